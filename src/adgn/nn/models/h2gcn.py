"""H2GCN: neighbours and their neighbours apart, and all rounds next to each other."""

from collections.abc import Iterator

import torch
from pydantic import Field
from torch import Tensor, nn

from adgn.graph import Adjacency, OperatorDirection, hop_operator
from adgn.graph.checks import check_edge_weight
from adgn.nn.base import Activation, resolve_activation
from adgn.nn.network import Model
from adgn.nn.registry import ModelOptions, register_model

_MOST_ROUNDS = 8


class H2GCNOptions(ModelOptions):
    """The options of H2GCN."""

    act: str | Activation | None = Field("relu", description="activation after the encoder")
    direction: OperatorDirection = Field(
        "undirected",
        description="along which edges hops are counted: `undirected`, as the authors do, `in` or "
        "`out`",
    )


class H2GCNPropagation(nn.Module):
    """The rounds of H2GCN, see [`H2GCN`][adgn.nn.models.H2GCN]; nothing in them is learned.

    Attributes:
        out_channels: The size of the last states, those of all rounds next to each other.
    """

    edge_dim = None

    def __init__(self, channels: int, num_layers: int, options: H2GCNOptions) -> None:
        super().__init__()
        if num_layers > _MOST_ROUNDS:
            raise ValueError(
                f"num_layers={num_layers} is not valid for h2gcn: states double in size with every "
                f"round, to {channels} · 2^{num_layers}; give 1 or 2, as the authors do, and at "
                f"most {_MOST_ROUNDS}"
            )
        self.num_layers = num_layers
        self.out_channels = channels * (2 ** (num_layers + 1) - 1)
        self.direction: OperatorDirection = options.direction
        self.act = resolve_activation(options.act)

    # Which pairs there are depends on the graph: nothing that a compiler could record.
    @torch.compiler.disable(reason="pairs of nodes two hops apart depend on the graph")  # type: ignore[no-untyped-call, untyped-decorator]
    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The states of all rounds next to each other, `[N, out_channels]`."""
        return torch.cat(list(self.rounds(x, edge_index, edge_weight)), dim=-1)

    def trajectory(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> list[Tensor]:
        """`x` and the states after each round; the last ones are next to all before them."""
        rounds = list(self.rounds(x, edge_index, edge_weight))
        return [x, *rounds[1:-1], torch.cat(rounds, dim=-1)]

    def rounds(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Iterator[Tensor]:
        """The states after the activation and after each round, `[N, d]`, `[N, 2 d]`, …"""
        if edge_weight is not None and isinstance(edge_index, Tensor):
            check_edge_weight(edge_weight, edge_index.size(1), x)
        graph = {"num_nodes": x.size(-2), "direction": self.direction, "like": x}
        near = hop_operator(edge_index, 1, **graph)  # type: ignore[arg-type]
        far = hop_operator(edge_index, 2, **graph)  # type: ignore[arg-type]
        x = x if self.act is None else self.act(x)
        yield x
        for _ in range(self.num_layers):
            x = torch.cat([near @ x, far @ x], dim=-1)
            yield x

    def extra_repr(self) -> str:
        """Rounds and direction, for `repr`."""
        return f"num_layers={self.num_layers}, direction={self.direction!r}"


@register_model(
    "h2gcn",
    title="H2GCN",
    paper="https://arxiv.org/abs/2006.11468",
    rule=r"\mathbf{X}^\ell = \big[\bar{\mathbf{A}}_1 \mathbf{X}^{\ell-1} \,\Vert\, "
    r"\bar{\mathbf{A}}_2 \mathbf{X}^{\ell-1}\big],\quad \mathbf{X}^0 \leftarrow "
    r"\sigma(\mathbf{X}^0);\quad \text{read: } \big[\mathbf{X}^0 \,\Vert \dots \Vert\, "
    r"\mathbf{X}^L\big]",
    hops_per_layer=2,
    memory="2^\\ell nd",
    time="2^\\ell (m + m_2) d",
    options=H2GCNOptions,
    note="$\\bar{\\mathbf{A}}_k$ is of the pairs at distance exactly $k$, without self loops, with "
    "degrees of its own; $m_2$ counts the pairs at distance 2. Edge weights are not used: an edge "
    "is there or not. States double with each round, and the readout reads "
    "$(2^{L+1} - 1) d$ of them; the authors take $L$ = 1 or 2, here it may be up to 8. Their "
    "encoder has no bias, `encoder='linear_no_bias'`, and they drop only what the readout reads, "
    "where `dropout` here drops first states too.",
)
class H2GCN(Model):
    r"""[H2GCN](https://arxiv.org/abs/2006.11468), made for graphs whose neighbours differ.

    $$
    \mathbf{R}^{k+1} = [\bar{\mathbf{A}}_1 \mathbf{R}^k \,\Vert\, \bar{\mathbf{A}}_2 \mathbf{R}^k],
    \qquad \hat{\mathbf{Y}} = [\mathbf{R}^0 \,\Vert \dots \Vert\, \mathbf{R}^L]\, \mathbf{W}
    $$

    where $\bar{\mathbf{A}}_1$ and $\bar{\mathbf{A}}_2$ are the operators of nodes at distance one
    and two, see [`hop_operator`][adgn.graph.hop_operator].

    Example:
        >>> from adgn.nn import build_model
        >>> model = build_model("h2gcn", 3, 16, 2, num_layers=2)
        >>> model.state_channels  # 16 + 32 + 64
        112
        >>> model(torch.randn(3, 3), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 2])
    """

    build_propagation = H2GCNPropagation
