"""MP-SSM: a linear recurrence on the graph, and an MLP after it."""

from collections.abc import Iterator
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from adgn.graph import Adjacency, Direction
from adgn.graph.adjacency import Normalization
from adgn.nn.conv import GraphConvolution
from adgn.nn.integration import integrate
from adgn.nn.models.blocks import BlockOptions, in_blocks
from adgn.nn.models.options import AnyDirection, BlockMLP, KeptMemory
from adgn.nn.network import Model
from adgn.nn.registry import register_model
from adgn.nn.steppers import Memory, checkpointed


class MPSSMOptions(BlockOptions):
    """The options of MP-SSM."""

    inputs: Literal["every", "first"] = Field(
        "every", description="whether the block's input comes in at `every` step or at the `first`"
    )
    normalization: Literal["gcn", "sym", "mean", "none"] = Field(
        "gcn", description="the operator A: `gcn` (with self loops), `sym`, `mean` or `none`"
    )
    memory: KeptMemory = "full"
    direction: AnyDirection = "in"
    block_mlp: BlockMLP = "tanh"


class LinearRecurrence(GraphConvolution, nn.Module):
    r"""`num_layers` steps of $\mathbf{X} \leftarrow \mathbf{A} \mathbf{X} \mathbf{W}^\top +
    \mathbf{U} \mathbf{B}^\top$, from $\mathbf{X} = \mathbf{U} \mathbf{B}^\top$.

    $\mathbf{U}$ are the states that the block is given. $\mathbf{W}$ starts orthogonal, so that no
    direction of a state vanishes or explodes by it. The arguments are those of the model `mpssm`.
    """

    def __init__(self, channels: int, num_layers: int, options: MPSSMOptions) -> None:
        super().__init__()
        self.channels = channels
        self.num_layers = num_layers
        self.inputs = options.inputs
        self.normalization: Normalization = options.normalization
        self.memory: Memory = options.memory
        self.direction: Direction = options.direction
        # One matrix per direction, one above the other.
        count = 2 if options.direction == "both" else 1
        self.weight = nn.Parameter(torch.empty(count, channels, channels))
        self.input = nn.Linear(channels, channels, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        for one in self.weight:
            nn.init.orthogonal_(one)
        self.input.reset_parameters()

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The states after all steps."""
        operator = self.prepared(x, edge_index, edge_weight)
        given = self.input(x)
        weight = self.weight.flatten(0, 1)
        if self.inputs == "first":
            # x + (−x + A x Wᵀ): an Euler step of size 1, for which there are kernels.
            leave = -torch.eye(self.channels, dtype=x.dtype, device=x.device)
            settings = {"epsilon": 1.0, "act": None, "num_steps": self.num_layers}
            weights = (leave.unsqueeze(0), weight.unsqueeze(0), None)
            return integrate(given, operator, *weights, **settings, memory=self.memory)  # type: ignore[arg-type]

        def some_steps(x: Tensor, first: int, last: int) -> Tensor:
            for _ in range(first, last):
                x = operator @ (x @ weight.t()) + given
            return x

        return checkpointed(some_steps, given, self.num_layers, self.memory, lambda *_: [])

    def trajectory(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> list[Tensor]:
        """`x` and the states after each step, the last as `forward`."""
        return [x, *self._steps(x, edge_index, edge_weight)]

    def _steps(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None
    ) -> Iterator[Tensor]:
        operator = self.prepared(x, edge_index, edge_weight)
        given = x = self.input(x)
        for _ in range(self.num_layers):
            x = operator @ (x @ self.weight.flatten(0, 1).t())
            if self.inputs == "every":
                x = x + given
            yield x

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        direction = "" if self.direction == "in" else f", direction={self.direction!r}"
        return (
            f"{self.channels}, num_layers={self.num_layers}, inputs={self.inputs!r}, "
            f"normalization={self.normalization!r}{direction}"
        )


@register_model(
    "mpssm",
    title="MP-SSM",
    paper="https://arxiv.org/abs/2505.18728",
    rule=r"\mathbf{X}^\ell = \mathbf{A} \mathbf{X}^{\ell-1} \mathbf{W}^\top + \mathbf{U} "
    r"\mathbf{B}^\top,\quad \mathbf{X}^0 = \mathbf{U} \mathbf{B}^\top;\quad \text{after } L "
    r"\text{ steps } \mathbf{X} \leftarrow \mathrm{MLP}(\mathbf{X})",
    memory="nd",
    time="nd^2 + md",
    options=MPSSMOptions,
    note="A block is $L$ linear steps and an MLP; $\\mathbf{U}$ are the states that it is given, "
    "and $B$ blocks hear $BL$ hops. The Jacobian of a state in one $s$ steps before is exactly "
    "$(\\mathbf{A}^s)_{uj}\\, \\mathbf{W}^s$. With `inputs='first'` the input comes in once, and "
    "the steps run in the native kernels.",
)
class MPSSM(Model):
    """Message-passing state-space model (Ceni et al., 2025)."""

    @staticmethod
    def build_propagation(channels: int, num_layers: int, options: MPSSMOptions) -> nn.Module:
        """The blocks."""
        return in_blocks(lambda: LinearRecurrence(channels, num_layers, options), channels, options)
