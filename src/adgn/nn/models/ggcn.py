"""GGCN: messages signed by the cosine of the states they come from, and corrected by degrees."""

import math
from dataclasses import dataclass

import torch
from pydantic import Field
from torch import Tensor, nn

from adgn.graph import Adjacency, EdgeOperator, Operator, edge_cosine
from adgn.graph.adjacency import Normalization
from adgn.nn.base import GraphConvolution, elu, scaled, softplus
from adgn.nn.models.diffusion import DiffusionOptions
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class GGCNOptions(DiffusionOptions):
    """The options of GGCN."""

    decay: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="δ in the shares η of later layers"
    )
    exponent: float = Field(
        3.0, ge=0, allow_inf_nan=False, description="p in the shares η: how fast they fall"
    )


@dataclass(frozen=True, eq=False)
class Links:
    r"""What all layers know of the graph's edges; none of it is learned.

    Attributes:
        operator: The edges with their weights, without normalisation.
        share: `[entries]`; $a_{uj}$ of $\mathbf{D}^{-1/2} (\mathbf{A} + \mathbf{I})
            \mathbf{D}^{-1/2}$ off the diagonal. Self loops have zero.
        terms: `[entries, 2]`; the degree correction $a_{uu} / a_{uj} - 1$, and ones.
    """

    operator: Operator
    share: Tensor
    terms: Tensor

    @classmethod
    def of(cls, operator: Operator) -> "Links":
        """The links of an operator without normalisation."""
        if operator.has_negative_values:
            raise ValueError(
                "edge_weight has negative entries; GGCN divides by the weights of edges and by "
                "roots of degrees: give weights of at least 0"
            )
        (row, col), weight = operator.places, operator.value
        nodes, loop = weight.new_zeros(operator.shape[0]), row == col
        # The identity comes on top of a self loop that is there.
        degree = 1 + nodes.index_add(0, row, weight)
        own = 1 + nodes.index_add(0, row, torch.where(loop, weight, 0.0))
        scale = degree.rsqrt()
        scales = scale.index_select(0, row) * scale.index_select(0, col)
        share = torch.where(loop, 0.0, weight * scales)
        whole = weight
        if isinstance(operator, EdgeOperator):  # which has repeated edges apart
            group = row * operator.shape[1] + col
            group = torch.searchsorted(group.sort().values, group)
            whole = torch.zeros_like(weight).index_add(0, group, weight).index_select(0, group)
        silent = whole == 0  # as no edge
        ratio = (own / degree).index_select(0, row) / (torch.where(silent, 1.0, whole) * scales)
        correction = torch.where(silent, 0.0, ratio - 1)
        terms = torch.stack([correction, torch.ones_like(correction)], 1)
        return cls(operator, share, terms)


class GGCNLayer(nn.Module):
    r"""One layer of GGCN, of $\mathbf{Z} = \mathbf{X} \mathbf{W} + \mathbf{b}$.

    $$
    \mathbf{X}' = \operatorname{softplus}(\kappa)\, (\alpha_0 \mathbf{P}^+ \mathbf{Z} + \alpha_1
        \mathbf{P}^- \mathbf{Z} + \alpha_2 \mathbf{Z}), \qquad
    p_{uj} = a_{uj} \operatorname{softplus}(\lambda_0 r_{uj} + \lambda_1)
        \cos(\mathbf{z}_u, \mathbf{z}_j)
    $$

    with $\mathbf{P}^\pm$ the positive and the negative entries of $\mathbf{P}$, and $\alpha$ a
    softmax of three numbers.

    Args:
        channels: The size of $\mathbf{X}$; `None`: the layer is given $\mathbf{Z}$ itself.
        out_channels: The size of $\mathbf{Z}$.
    """

    def __init__(self, channels: int | None, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Identity() if channels is None else nn.Linear(channels, out_channels)
        self.correction = nn.Parameter(torch.empty(2))  # λ
        self.signs = nn.Parameter(torch.empty(3))  # α before the softmax
        self.scale = nn.Parameter(torch.empty(()))  # κ
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights; the numbers begin as the authors' do."""
        if isinstance(self.lin, nn.Linear):
            self.lin.reset_parameters()
        with torch.no_grad():
            self.correction.copy_(torch.tensor([0.5, 0.0]))
            self.signs.zero_()
            self.scale.fill_(2.0)

    def forward(self, x: Tensor, links: Links) -> Tensor:
        """The next states."""
        z = self.lin(x)
        cosine = edge_cosine(links.operator, z)
        numbers = softplus(self.scale) * self.signs.softmax(0)
        # Two columns, each with its number: their gradients are sums over columns, which torch does
        # alike on any number of threads.
        signed = torch.stack([cosine.relu(), -(-cosine).relu()], 1)
        weight = softplus((links.terms * self.correction).sum(1))
        value = links.share * weight * (signed * numbers[:2]).sum(1)
        heard: Tensor = links.operator.with_values(value) @ z
        return heard + scaled(numbers[2], z)


class GGCNPropagation(GraphConvolution, nn.Module):
    """The layers of GGCN, see [`GGCN`][adgn.nn.models.GGCN].

    Attributes:
        encoded_channels: What the encoder gives: the weights of the first layer and of the first
            collected states are the encoder's, so that features go through one linear map. Without
            an encoder they are here.
        out_channels: The size of the last states.
    """

    normalization: Normalization = "none"

    def __init__(
        self,
        channels: int,
        num_layers: int,
        options: GGCNOptions,
        out_channels: int | None = None,
    ) -> None:
        super().__init__()
        self.direction = options.direction
        self.out_channels = channels if out_channels is None else out_channels
        sizes = [channels] * (num_layers - 1) + [self.out_channels]
        encoded = options.encoder not in (None, "none")
        self.first = None if encoded else nn.Linear(channels, channels)
        self.parts = [channels, sizes[0]]
        self.encoded_channels = sum(self.parts) if encoded else channels
        self.layers = nn.ModuleList(
            GGCNLayer(None if encoded and number == 0 else channels, size)
            for number, size in enumerate(sizes)
        )
        self.dropout = nn.Dropout(options.dropout)
        power = options.exponent
        self.shares = [1.0]
        self.shares += [
            math.log(options.decay / (i + 2) ** power + 1) for i in range(1, num_layers)
        ]

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The states after the last layer."""
        links = Links.of(self.operator(x, edge_index, edge_weight))
        if self.first is None:
            begin, x = torch.split(x, self.parts, dim=-1)
        else:
            begin = self.first(x)
        collected = elu(begin)
        h: Tensor = self.layers[0](x, links)
        for layer, share in zip(self.layers[1:], self.shares, strict=False):
            h = self.dropout(elu(h))
            collected = torch.add(collected, h, alpha=share)
            h = layer(collected, links)
        return h

    def extra_repr(self) -> str:
        """Where a node listens, for `repr`."""
        return "" if self.direction == "in" else f"direction={self.direction!r}"


@register_model(
    "ggcn",
    title="GGCN",
    paper="https://arxiv.org/abs/2102.06462",
    rule=r"\mathbf{X}^\ell = \mathrm{softplus}(\kappa) (\alpha_0 \mathbf{P}^+ + \alpha_1 "
    r"\mathbf{P}^- + \alpha_2 \mathbf{I}) \mathbf{Z},\quad \mathbf{Z} = \mathbf{R}^{\ell-1} "
    r"\mathbf{W}_\ell + \mathbf{b}_\ell,\quad p_{uj} = \hat{a}_{uj}\, \mathrm{softplus}(\lambda_0 "
    r"r_{uj} + \lambda_1) \cos(\mathbf{z}_u, \mathbf{z}_j)",
    memory="nd + m",
    time="nd^2 + md",
    options=GGCNOptions,
    note="$\\mathbf{R}$ collects the layers' outputs with shares $\\eta$ that fall with depth. "
    "`dropout` acts between layers too. In the authors' code a node hears its out-neighbours "
    "(`direction='out'`), the last layer gives the outputs (`readout='none'`), and the first "
    "dropout is of the features (`first_dropout='features'`). Edge weights must not be negative.",
)
class GGCN(Model):
    r"""The [generalised GCN](https://arxiv.org/abs/2102.06462) of Yan and others.

    $$
    \mathbf{R} \leftarrow \operatorname{elu}(\mathbf{X}^0 \mathbf{W} + \mathbf{b}), \quad
    \mathbf{H} \leftarrow f_1(\mathbf{X}^0), \qquad
    \mathbf{R} \leftarrow \mathbf{R} + \eta_i \operatorname{elu}(\mathbf{H}), \quad
    \mathbf{H} \leftarrow f_{i+2}(\mathbf{R}), \qquad i = 0 \dots L - 2
    $$

    with $\eta_0 = 1$ and $\eta_i = \ln(\delta / (i + 2)^p + 1)$. In a layer $f$ (see
    `adgn.nn.models.ggcn.GGCNLayer`) a message has the sign of the cosine of both states, with
    learned numbers for positive and negative ones, and is corrected by how the degrees of both
    nodes differ, $r_{uj} = \hat{a}_{uu} / \hat{a}_{uj} - 1$, $\hat{\mathbf{A}} =
    \mathbf{D}^{-1/2} (\mathbf{A} + \mathbf{I}) \mathbf{D}^{-1/2}$.

    The encoder holds the weights of the first $\mathbf{R}$ and of $f_1$, which are trained and have
    a bias as it does. With `readout="none"` the last layer of nodes has `out_channels` columns, as
    in the authors' network.

    Example:
        >>> import torch
        >>> from adgn.nn import build_model
        >>> model = build_model("ggcn", 3, 16, 2, num_layers=5, direction="out", readout="none")
        >>> model(torch.randn(3, 3), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 2])
    """

    build_propagation = GGCNPropagation

    def propagation_for(
        self, channels: int, num_layers: int, options: GGCNOptions, outputs: int | None
    ) -> nn.Module:
        """Layers of which the last one gives the outputs where no readout does."""
        return GGCNPropagation(channels, num_layers, options, outputs)
