"""Blocks in a row, which many models share: steps of one kind, then an MLP without the graph."""

from collections.abc import Callable
from typing import Any

from pydantic import Field
from torch import Tensor, nn

from adgn.graph import Adjacency
from adgn.nn.base import Activation, resolve_activation
from adgn.nn.models.options import BlockMLP
from adgn.nn.norms import NORMS, NormName, PairNorm, apply_norm, build_norm
from adgn.nn.registry import ModelOptions


class BlockOptions(ModelOptions):
    """The options of models that can be put together from blocks."""

    blocks: int = Field(
        1, ge=1, description="how many blocks of `num_layers` steps, each with weights of its own"
    )
    block_mlp: BlockMLP = None
    block_residual: bool = Field(False, description="whether a block adds to its input")
    block_norm: NormName = Field("none", description=f"normalisation after each block: {NORMS}")

    @property
    def is_one_bare_block(self) -> bool:
        """Whether there is nothing but the steps."""
        bare = self.block_mlp is None and not self.block_residual and self.block_norm == "none"
        return bare and self.blocks == 1


class Block(nn.Module):
    r"""$\mathbf{X} \leftarrow \operatorname{norm}([\mathbf{X} +]\ \operatorname{MLP}(
    \operatorname{steps}(\mathbf{X}, \mathcal{G})))$.

    Args:
        steps: Called as `steps(x, edge_index, edge_weight, ...)`; its method `trajectory` gives
            the states after each step.
        channels: The size of a state.
        options: What comes after the steps.
    """

    def __init__(self, steps: nn.Module, channels: int, options: BlockOptions) -> None:
        super().__init__()
        self.steps = steps
        self.residual = options.block_residual
        self.mlp: nn.Module | None = None
        if options.block_mlp is not None:
            self.mlp = _mlp(channels, resolve_activation(options.block_mlp))
        self.norm = build_norm(options.block_norm, channels)

    def forward(
        self,
        x: Tensor,
        edge_index: Adjacency,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """The states after the block; `batch` is for PairNorm."""
        last = self.steps(x, edge_index, edge_weight, **kwargs)
        return self._finish(x, last, batch, batch_size)

    def trajectory(
        self,
        x: Tensor,
        edge_index: Adjacency,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[Tensor]:
        """`x` and the states after each step; what follows the steps is part of the last one."""
        *before, last = self.steps.trajectory(x, edge_index, edge_weight, **kwargs)  # type: ignore[operator]
        return [*before, self._finish(x, last, batch, batch_size)]

    def _finish(self, x: Tensor, h: Tensor, batch: Tensor | None, batch_size: int | None) -> Tensor:
        if self.mlp is not None:
            h = self.mlp(h)
        if self.residual:
            h = x + h
        return apply_norm(self.norm, h, batch, batch_size)


class Blocks(nn.Module):
    r"""Blocks in a row, see `Block`.

    Between the hops of a block there need be no non-linearity: with linear steps the graph is
    crossed by a linear map, and only the MLPs are not.

    Args:
        make: Builds the steps of a block.
        channels: The size of a state.
        options: How many blocks, and what each is besides its steps.

    Shapes: states `[N, channels]`, a graph → states `[N, channels]`.

    Example:
        >>> import torch
        >>> from adgn.nn import ADGN
        >>> model = ADGN(3, 8, 2, num_layers=5, act=None, blocks=2, block_mlp="tanh")
        >>> len(model.propagation.blocks)
        2
        >>> model(torch.randn(2, 3), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([2, 2])
    """

    def __init__(self, make: Callable[[], nn.Module], channels: int, options: BlockOptions) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(make(), channels, options) for _ in range(options.blocks))
        first = self.blocks[0].steps
        if hasattr(first, "edge_dim"):
            self.edge_dim = first.edge_dim
        self.reads_batch = isinstance(self.blocks[0].norm, PairNorm)

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None, **kwargs: Any
    ) -> Tensor:
        """The states after all blocks."""
        for block in self.blocks:
            x = block(x, edge_index, edge_weight, **kwargs)
        return x

    def trajectory(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None, **kwargs: Any
    ) -> list[Tensor]:
        """`x` and the states after each step of all blocks, the last as `forward`."""
        states = [x]
        for block in self.blocks:
            states += block.trajectory(states[-1], edge_index, edge_weight, **kwargs)[1:]  # type: ignore[operator]
        return states


def in_blocks(make: Callable[[], nn.Module], channels: int, options: BlockOptions) -> nn.Module:
    """`Blocks`, or the steps alone where the options ask for nothing else."""
    return make() if options.is_one_bare_block else Blocks(make, channels, options)


def _mlp(channels: int, act: Activation | None) -> nn.Module:
    assert isinstance(act, nn.Module)
    return nn.Sequential(nn.Linear(channels, channels), act, nn.Linear(channels, channels))
