"""PathGCN: convolutions along random walks."""

from collections.abc import Iterator

import torch
from pydantic import Field
from torch import Tensor, nn

from adgn.graph import GraphOperator, SparseOperator, TwoWayOperator
from adgn.graph.adjacency import normalized
from adgn.graph.checks import is_traced
from adgn.graph.walks import walk_operators
from adgn.nn.aggregation import reset_bias
from adgn.nn.base import Activation
from adgn.nn.models.diffusion import Diffusion, PropagationOptions
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class PathGCNOptions(PropagationOptions):
    """The options of pathGCN."""

    act: str | Activation | None = Field("relu", description="activation of each layer")
    walks: int = Field(5, ge=1, description="random walks from each node, drawn while training")
    length: int = Field(
        5, ge=1, description="nodes of a walk, the first one included: a layer's hops and one more"
    )
    alpha: float = Field(0.1, ge=0, le=1, description="the share α of the first states")


def transition(operator: GraphOperator) -> GraphOperator:
    """The probabilities of a walk's next node: each row of the operator divided by its sum.

    Rows of a graph's edges sum to one already, those of an operator that is taken as given, such as
    a diffused graph's, need not. Drawn walks divide by the sum too.
    """
    if isinstance(operator, TwoWayOperator) or getattr(operator, "graph", None) is not None:
        return operator  # made from edges
    value, check = operator.value, not is_traced(operator.value)
    rows = normalized(value, *operator.places, operator.shape[0], "mean", check=check)
    return operator.with_values(rows)


class PathPropagation(Diffusion):
    """The layers of pathGCN, see [`PathGCN`][adgn.nn.models.PathGCN].

    Attributes:
        along: `[num_layers, length, channels]`; the weights along a walk.
        lins: The weights of the channels, one matrix per layer.
    """

    def __init__(self, channels: int, num_layers: int, options: PathGCNOptions) -> None:
        super().__init__(num_layers, "mean", options.act, options.direction)
        self.walks, self.length, self.alpha = options.walks, options.length, options.alpha
        self.along = nn.Parameter(torch.empty(num_layers, options.length, channels))
        self.lins = nn.ModuleList(
            nn.Linear(channels, channels, bias=False) for _ in range(num_layers)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights; along a walk as torch does for a convolution of each channel."""
        reset_bias(self.along, self.length)
        for lin in self.lins:
            lin.reset_parameters()  # type: ignore[operator]

    def steps(self, x: Tensor, operator: GraphOperator) -> Iterator[Tensor]:
        """The states after each layer; while training on walks that all layers share."""
        drawn = self._draw(operator) if self.training and self.length > 1 else None
        expected = operator if drawn is not None else transition(operator)
        first = x
        for along, lin in zip(self.along.unbind(), self.lins, strict=True):
            own, *weights = along.unbind()
            mixed, reached = own * x, x
            for step, weight in enumerate(weights):
                reached = expected @ reached if drawn is None else drawn[step] @ x
                mixed = mixed + weight * reached
            x = self.alpha * first + (1 - self.alpha) * self.activate(lin(mixed))
            yield x

    def _draw(self, operator: GraphOperator) -> list[SparseOperator]:
        if not isinstance(operator, SparseOperator):
            raise ValueError(
                "pathGCN draws random walks while training, which cannot be traced, compiled or "
                "explained; call model.eval() first, for the expectation over all walks"
            )
        if operator.value.requires_grad:
            raise ValueError(
                "edge_weight requires a gradient, but random walks have none; call model.eval() "
                "for the expectation over all walks, or pass edge_weight.detach()"
            )
        return walk_operators(operator, self.length - 1, self.walks)

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return f"{super().extra_repr()}, walks={self.walks}, length={self.length}"


@register_model(
    "pathgcn",
    title="pathGCN",
    paper="https://proceedings.mlr.press/v162/eliasof22a.html",
    rule=r"\mathbf{X}^\ell = \alpha \mathbf{X}^0 + (1 - \alpha)\, \sigma\Big(\big[\tfrac{1}{p} "
    r"\sum_{i=1}^{p} \sum_{s=0}^{S-1} \mathbf{w}_{\ell,s} \odot "
    r"\mathbf{X}^{\ell-1}_{\mathrm{walk}_i(s)}\big] \mathbf{W}_\ell^\top\Big)",
    hops_per_layer=4,
    memory="Snd",
    time="nd^2 + S \\min(pn, m) d",
    options=PathGCNOptions,
    note="$p$ is `walks`, $S$ is `length`; the receptive field is that of length 5. While "
    "training, walks are drawn anew in each step, from torch's generator as for dropout, so that "
    "a run's seed decides them. Otherwise the expectation over all walks, $(\\mathbf{D}^{-1} "
    "\\mathbf{A})^s \\mathbf{X}$, takes their place: nothing is drawn. A walk goes to where a "
    "node listens, with probabilities as the edges' weights, and ends at a node without edges. "
    "The weights along walks begin as those of a torch convolution do; the authors' start is not "
    "known to us.",
)
class PathGCN(Model):
    r"""[pathGCN](https://proceedings.mlr.press/v162/eliasof22a.html): learned weights along walks.

    $$
    \mathbf{X} \leftarrow \alpha \mathbf{X}^0 + (1 - \alpha)\, \sigma\Big(\Big[\frac{1}{p}
        \sum_{i=1}^{p} \sum_{s=0}^{S-1} \mathbf{w}_s \odot \mathbf{X}_{\mathrm{walk}_i(s)}\Big]
        \mathbf{W}^\top\Big)
    $$

    A walk from a node is drawn while training; otherwise the expectation over all of them is taken,
    $\sum_s \mathbf{w}_s \odot (\mathbf{D}^{-1} \mathbf{A})^s \mathbf{X}$.

    Example:
        >>> from adgn.nn import build_model
        >>> model = build_model("pathgcn", 3, 16, 2, num_layers=4)
        >>> model(torch.randn(3, 3), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 2])
    """

    build_propagation = PathPropagation
