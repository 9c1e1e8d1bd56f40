"""A-DGN: the anti-symmetric deep graph network."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator
from torch import Tensor, nn

from adgn.graph import Adjacency, NeededNodes, SparseOperator, needed_nodes
from adgn.nn.antisymmetric import AntiSymmetricConv, as_one_integration, integrate_layers
from adgn.nn.base import Activation
from adgn.nn.conv import GraphConvolution
from adgn.nn.integrators import EULER, Integrator
from adgn.nn.models.blocks import BlockOptions, in_blocks
from adgn.nn.models.diffusion import DiffusionOptions
from adgn.nn.models.options import AnyDirection, KeptMemory, StepSize
from adgn.nn.models.sgc import SGCPropagation
from adgn.nn.network import Model
from adgn.nn.registry import ModelOptions, register_model
from adgn.nn.steppers import Memory, checkpointed


class AntiSymmetricPropagation(nn.Module):
    """`num_layers` anti-symmetric updates, with shared or layer-dependent weights.

    The arguments are those of [`ADGN`][adgn.nn.ADGN] and of `AntiSymmetricConv`.
    """

    def __init__(
        self,
        channels: int,
        num_layers: int,
        *,
        phi: str | nn.Module | None,
        weight_sharing: bool,
        first_hops: int = 0,
        **options: Any,
    ) -> None:
        super().__init__()
        if isinstance(phi, nn.Module) and not weight_sharing:
            raise ValueError(
                f"phi={type(phi).__name__}(...) is one module, but weight_sharing=False needs one "
                "per layer; pass the name of an aggregation, or set weight_sharing=True"
            )
        steps = [num_layers] if weight_sharing else [1] * num_layers
        self.num_layers = num_layers
        self.memory: Memory = options.get("memory", "full")
        self.layers = nn.ModuleList(
            AntiSymmetricConv(channels, phi, num_iters=count, **options) for count in steps
        )
        first = self.layers[0]
        assert isinstance(first, AntiSymmetricConv)
        integrator = first.integrator
        if not weight_sharing and not integrator.one_step:
            raise ValueError(
                f"integrator={integrator.name!r} uses the rates of earlier layers, which have "
                "other weights with weight_sharing=False; set weight_sharing=True, or take a "
                "one-step integrator such as 'rk4'"
            )
        self.hops: SGCPropagation | None = None
        if first_hops > 0:
            listens = DiffusionOptions.model_validate({"direction": options.get("direction", "in")})
            self.hops = SGCPropagation(channels, first_hops, listens)
        aggregation = self.layers[0].phi
        if isinstance(aggregation, GraphConvolution):
            self.edge_dim = aggregation.edge_dim

    def needed(
        self, like: Tensor, edge_index: Adjacency, edge_weight: Tensor | None, nodes: Tensor
    ) -> NeededNodes | None:
        """What the last states of `nodes` need, for `forward`; see `GraphNetwork.forward`."""
        alike = as_one_integration(self.layers)
        if alike is None or alike[0].integrator != EULER or self.hops is not None:
            return None
        operator = alike[0].phi.prepared(like, edge_index, edge_weight)  # type: ignore[operator]
        return needed_nodes(operator, nodes, self.num_layers)

    def forward(
        self,
        x: Tensor,
        edge_index: Adjacency | NeededNodes,
        edge_weight: Tensor | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """The states after all layers."""
        x = self._start(x, edge_index, edge_weight)
        if edge_weight is not None:
            kwargs["edge_weight"] = edge_weight
        alike = as_one_integration(self.layers)
        if alike is not None:
            return integrate_layers(alike, self.num_layers, x, edge_index, **kwargs)
        if isinstance(edge_index, NeededNodes):
            raise TypeError("edge_index is NeededNodes, which these layers cannot use; see needed")
        if len(self.layers) == 1:
            states: Tensor = self.layers[0](x, edge_index, **kwargs)
            return states

        layers = list(self.layers)

        def some_layers(x: Tensor, first: int, last: int) -> Tensor:
            for layer in layers[first:last]:
                x = layer(x, edge_index, **kwargs)
            return x

        def modules(first: int, last: int) -> list[object]:
            return [part for layer in layers[first:last] for part in (layer.phi, layer.act)]

        return checkpointed(some_layers, x, len(layers), self.memory, modules)

    def trajectory(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None, **kwargs: Any
    ) -> list[Tensor]:
        """What enters the first of the `num_layers` layers, and the states after each of them.

        That is `x` without first hops; the last states are those of `forward`.
        """
        states = [self._start(x, edge_index, edge_weight)]
        if edge_weight is not None:
            kwargs["edge_weight"] = edge_weight
        for layer in self.layers:
            states.extend(layer.trajectory(states[-1], edge_index, **kwargs)[1:])  # type: ignore[operator]
        return states

    def _start(
        self, x: Tensor, edge_index: Adjacency | NeededNodes, edge_weight: Tensor | None
    ) -> Tensor:
        """The states that enter the first layer."""
        if self.hops is None:
            return x
        if isinstance(edge_index, SparseOperator) and self._normalization != "gcn":
            raise ValueError(
                "edge_index is a SparseOperator, but first_hops needs GCN's operator and the "
                f"layers another ({self._normalization!r}); pass the edges, or GraphBlocks"
            )
        start: Tensor = self.hops(x, edge_index, edge_weight)
        return start

    @property
    def _normalization(self) -> str | None:
        return getattr(self.layers[0].phi, "normalization", None)


class UpdateOptions(ModelOptions):
    """The options of A-DGN's updates."""

    phi: str | nn.Module | None = Field(
        "sum",
        description="the aggregation Φ: `sum`, `gcn`, `cheb`, `gat`, `gcnii`, `ggnn`, `gin`, "
        "`gine`, `graphsage`, or a module",
    )
    weight_sharing: bool = Field(True, description="one (W, V, b) for all layers, or one per layer")
    epsilon: StepSize = 0.1
    gamma: float = Field(0.1, ge=0, allow_inf_nan=False, description="the diffusion γ")
    act: str | Activation | None = Field("tanh", description="the activation σ")
    bias: bool = Field(True, description="whether there is a b")
    memory: KeptMemory = "full"
    integrator: str | Integrator = Field(
        "euler",
        description="how the differential equation is stepped: `euler`, `heun`, `rk3`, `rk4`, "
        "`ab2`, `ab3`, `implicit-midpoint`, `etd1`, `etd2`, `bosh3`, `dopri5`, or an integrator",
    )
    integrator_options: Mapping[str, Any] | None = Field(
        None, description="options of a named integrator, such as `{'rtol': 1e-6}` for `dopri5`"
    )
    direction: AnyDirection = "in"
    edge_dim: int | None = Field(
        None, ge=1, description="features per edge, for a Φ that reads them (`gine`, `gat`)"
    )
    phi_kwargs: Mapping[str, Any] | None = Field(
        None, description="more options for Φ, such as `{'heads': 2}` for `gat`"
    )


class ADGNOptions(BlockOptions, UpdateOptions):
    """The options of A-DGN; those of its updates come first."""

    first_hops: int = Field(
        0,
        ge=0,
        description="how many hops of GCN's operator come between the encoder and the first layer: "
        "what enters it is averaged over a node and its neighbours",
    )

    @model_validator(mode="after")
    def _hops_fit(self) -> "ADGNOptions":
        if self.first_hops and self.direction == "both":
            raise ValueError(
                f"first_hops={self.first_hops} does not fit direction='both': hops have no weights "
                "that could differ for both directions; set direction to 'in', 'out' or "
                "'undirected', or first_hops=0."
            )
        if self.first_hops and not self.is_one_bare_block:
            raise ValueError(
                f"first_hops={self.first_hops} does not fit blocks: leave out blocks, block_mlp, "
                "block_residual and block_norm, or set first_hops=0."
            )
        return self


@register_model(
    "adgn",
    title="A-DGN",
    paper="https://openreview.net/forum?id=J3Y7cgZOOS",
    rule=r"\mathbf{x}_u^\ell = \mathbf{x}_u^{\ell-1} + \epsilon\, \sigma\left((\mathbf{W} - "
    r"\mathbf{W}^\top - \gamma \mathbf{I})\, \mathbf{x}_u^{\ell-1} + "
    r"\Phi(\mathbf{X}^{\ell-1}, \mathcal{N}_u) + \mathbf{b}\right)",
    memory="nd",
    time="nd^2 + md",
    options=ADGNOptions,
    note="Aggregation and weight sharing are variants with a row of their own in the paper's "
    "tables, not part of a grid. A Φ other than `sum` also reads the node's own state (by a self "
    "loop or a weight of its own): for γ = 0 the eigenvalues of a node's Jacobian are then not on "
    "the imaginary axis but within the norm of Φ's derivative in that state from it. For `gcn` "
    "this is ‖V‖ / d̂, with d̂ the node's degree and one for its self loop.",
)
class ADGN(Model):
    r"""The anti-symmetric deep graph network of [Gravina, Bacciu and Gallicchio (ICLR 2023)](https://openreview.net/forum?id=J3Y7cgZOOS).

    $$
    \mathbf{x}_u^\ell = \mathbf{x}_u^{\ell-1} + \epsilon\, \sigma\left(
        (\mathbf{W} - \mathbf{W}^\top - \gamma \mathbf{I})\, \mathbf{x}_u^{\ell-1}
        + \Phi(\mathbf{X}^{\ell-1}, \mathcal{N}_u) + \mathbf{b}\right),
    \qquad \ell = 1, \dots, L
    $$

    between an encoder and a readout (see `GraphNetwork`). The signal travels one edge per
    layer, and the integration time is $T = L \epsilon$.

    Args:
        in_channels: Features per node; with `encoder="embedding"` how many values each has.
        hidden_channels: The size $d$ of a node's state.
        out_channels: Outputs per node or graph.
        num_layers: The number $L$ of layers: at least the distance that matters.
        phi: The aggregation $\Phi$: `"sum"`, `"gcn"`, another name or a module, see
            `AntiSymmetricConv`.
        weight_sharing: One (W, V, b) for all layers, or one per layer.
        epsilon: The step size $\epsilon > 0$.
        gamma: The diffusion $\gamma \ge 0$.
        act: The activation $\sigma$.
        bias: Whether there is a $\mathbf{b}$.
        memory: What is kept for the gradient: `"full"`, or far less with `"checkpoint"`.
        integrator: A name from `adgn.nn.integrators.INTEGRATORS` (`"euler"`, the update above) or
            an integrator.
        integrator_options: Options of a named integrator.
        direction: Where a node listens: `"in"`, `"out"`, `"undirected"`, or `"both"` with a $\Phi$
            for each direction, see `AntiSymmetricConv`.
        edge_dim: Features per edge, for a `phi` that reads them (`"gine"`, `"gat"`).
        phi_kwargs: More options for a `phi` given by name.
        first_hops: How many hops of GCN's operator come between the encoder and the first layer:
            $\mathbf{X}^0 \leftarrow \hat{\mathbf{A}}^k \mathbf{X}^0$. A signal travels one edge
            farther with each. Not with blocks.
        blocks: How many blocks of `num_layers` updates, each with weights of its own.
        block_mlp: The activation of an MLP after the updates of each block; `None`: no MLP. With
            `act=None` the updates of a block are linear, and only the MLPs are not.
        block_residual: Whether a block adds to its input.
        block_norm: The normalisation after each block: `"none"`, `"layer"`, `"batch"`, `"pair"` or
            `"pair-si"`.
        level: `"node"` or `"graph"`.
        encoder: `"linear"`, `"linear_no_bias"`, `"embedding"` or `"none"`.
        readout: `"linear"`, `"linear_no_bias"`, `"mlp"`, `"ridge"` or `"none"`.
        dropout: The share of entries dropped, while training, of the first and of the last states.
        first_dropout: What the first dropout acts on: `"states"`, what the encoder gives, or
            `"features"`, what it is given.
        train_recurrent: `False` is the randomised variant: only encoder and readout are trained,
            with `readout="ridge"` the readout alone.
        fully_adjacent: Whether the readout of nodes is a last layer on the complete graph.

    Shapes: features `[N, in_channels]`, graph, edge weights `[E]` (optional), graph numbers `[N]`
    (at graph level) → `[N, out_channels]` or `[graphs, out_channels]`.

    Example:
        >>> import torch
        >>> from adgn.nn import ADGN
        >>> ring = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
        >>> model = ADGN(3, 32, 5, num_layers=20, level="graph")
        >>> model(torch.randn(4, 3), ring, batch=torch.zeros(4, dtype=torch.long)).shape
        torch.Size([1, 5])
        >>> model.parameter_counts()["propagation"]  # W, V: 32 × 32 each; b: 32
        2080
    """

    @staticmethod
    def build_propagation(channels: int, num_layers: int, options: ADGNOptions) -> nn.Module:
        """The updates, or blocks of them."""
        given = options.beyond(BlockOptions)
        edge_dim = given.pop("edge_dim")
        if edge_dim is not None:
            given["phi_kwargs"] = {**(given["phi_kwargs"] or {}), "edge_dim": edge_dim}
        phi = options.phi
        if isinstance(phi, nn.Module) and options.blocks > 1:
            raise ValueError(
                f"phi={type(phi).__name__}(...) is one module, but blocks={options.blocks} needs "
                "one per block; pass the name of an aggregation, or set blocks=1"
            )
        return in_blocks(
            lambda: AntiSymmetricPropagation(channels, num_layers, **given), channels, options
        )
