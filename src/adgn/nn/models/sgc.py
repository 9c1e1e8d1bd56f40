"""SGC: powers of GCN's operator between linear maps, and nothing else."""

from collections.abc import Iterator

from torch import Tensor

from adgn.graph import Adjacency, GraphOperator, SparseOperator
from adgn.graph.cache import cached
from adgn.nn.models.diffusion import Diffusion, DiffusionOptions
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class SGCPropagation(Diffusion):
    """A power of the operator. Of features that enter as they are it is worked out once."""

    def __init__(self, channels: int, num_layers: int, options: DiffusionOptions) -> None:
        super().__init__(num_layers, "gcn", None, options.direction)

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The last states."""
        operator = self.prepared(x, edge_index, edge_weight)
        if x.requires_grad or not isinstance(operator, SparseOperator):
            return self._power(x, operator)
        if operator.value.requires_grad:
            return self._power(x, operator)
        # The result lives as long as these very tensors do, unchanged.
        key = ("power", self.num_layers)
        return cached((x, operator.value), key, lambda: self._power(x, operator))

    def steps(self, x: Tensor, operator: GraphOperator) -> Iterator[Tensor]:
        """The states after each step."""
        for _ in range(self.num_layers):
            x = operator @ x
            yield x

    def _power(self, x: Tensor, operator: GraphOperator) -> Tensor:
        for states in self.steps(x, operator):
            x = states
        return x


@register_model(
    "sgc",
    title="SGC",
    paper="https://arxiv.org/abs/1902.07153",
    rule=r"\mathbf{X}^\ell = \hat{\mathbf{A}} \mathbf{X}^{\ell-1}",
    memory="1",
    time="md",
    options=DiffusionOptions,
    note="All of it is linear. With `encoder='none'` (`hidden_channels` is then the number of "
    "features, which must be dense) it is the paper's $\\hat{\\mathbf{A}}^L \\mathbf{X} "
    "\\mathbf{W} + \\mathbf{b}$, and $\\hat{\\mathbf{A}}^L \\mathbf{X}$ is computed once. With an "
    "encoder $\\mathbf{W}$ is a product of two matrices, and fewer numbers are propagated.",
)
class SGC(Model):
    r"""[Simple graph convolution](https://arxiv.org/abs/1902.07153): the linear baseline.

    $$
    \hat{\mathbf{Y}} = \hat{\mathbf{A}}^L \mathbf{X} \mathbf{W} + \mathbf{b}
    $$

    Example:
        >>> import torch
        >>> from adgn.nn import build_model
        >>> model = build_model("sgc", 3, 3, 2, num_layers=2, encoder="none")
        >>> model.parameter_counts()["total"]  # W and b
        8
        >>> model(torch.randn(2, 3), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([2, 2])
    """

    build_propagation = SGCPropagation
