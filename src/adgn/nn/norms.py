"""Normalisations of states, by name: one mechanism for stacks of layers and for blocks."""

from typing import Literal

import torch
from torch import Tensor, nn

from adgn.graph.checks import check_batch, check_choice, check_positive

NormName = Literal["none", "layer", "batch", "pair", "pair-si"]
PairMode = Literal["pair", "pair-si"]
NORMS = "`none`, `layer`, `batch`, `pair` or `pair-si` (PairNorm, for each graph by itself)"
_EPS = 1e-6  # inside both roots, as the authors have it


class PairNorm(nn.Module):
    r"""[PairNorm](https://arxiv.org/abs/1909.12223): pairwise distances that do not shrink.

    $$
    \mathbf{x}_u^c = \mathbf{x}_u - \frac{1}{n} \sum_v \mathbf{x}_v, \qquad
    \mathbf{x}_u' = \frac{s\, \mathbf{x}_u^c}
        {\sqrt{10^{-6} + \frac{1}{n} \sum_v \lVert \mathbf{x}_v^c \rVert^2}}
    $$

    With `mode="pair-si"` each state is scaled by itself, $\mathbf{x}_u' = s\, \mathbf{x}_u^c /
    \sqrt{10^{-6} + \lVert \mathbf{x}_u^c \rVert^2}$. Means are over the nodes of a graph, and of a
    batch for each of its graphs. But for the $10^{-6}$, the sum of all squared distances
    $\sum_{u, v} \lVert \mathbf{x}_u' - \mathbf{x}_v' \rVert^2$ is $2 n^2 s^2$ with `mode="pair"`.

    PyG's layer of this name has $10^{-5}$, which it adds outside of the root where each state is
    scaled by itself.

    Args:
        mode: `"pair"` (the authors' PN) or `"pair-si"` (PN-SI).
        scale: $s$.

    Shapes: states `[..., N, d]`, graph numbers `[N]` (optional; without them all nodes are one
    graph) → `[..., N, d]`.

    Example:
        >>> PairNorm()(torch.tensor([[0.0], [2.0], [4.0]])).flatten()  # mean 0, mean square 1
        tensor([-1.2247,  0.0000,  1.2247])
        >>> PairNorm()(torch.tensor([[0.0], [2.0], [7.0]]), batch=torch.tensor([0, 0, 1])).flatten()
        tensor([-1.0000,  1.0000,  0.0000])
    """

    def __init__(self, mode: PairMode = "pair", *, scale: float = 1.0) -> None:
        super().__init__()
        check_choice("mode", mode, ("pair", "pair-si"))
        check_positive("scale", scale)
        self.mode = mode
        self.scale = scale

    def forward(
        self, x: Tensor, batch: Tensor | None = None, batch_size: int | None = None
    ) -> Tensor:
        """The normalised states."""
        if batch is not None:
            check_batch(batch, x.size(-2), x, batch_size)
            batch = batch.long()
            if batch_size is None:
                batch_size = int(batch.max()) + 1 if batch.numel() else 0
        centred = x - _node_mean(x, batch, batch_size)
        size = centred.square()
        if self.mode == "pair":
            size = _node_mean(size, batch, batch_size)
        factor = self.scale * (_EPS + size.sum(-1, keepdim=True)).rsqrt()
        # A factor per channel: sums over nodes, also that of its gradient, are then made for each
        # channel by itself, which torch does alike on any number of threads.
        return factor.expand(*factor.shape[:-1], x.size(-1)) * centred

    def extra_repr(self) -> str:
        """Mode and scale, for `repr`."""
        return f"mode={self.mode!r}, scale={self.scale}"


def _node_mean(x: Tensor, batch: Tensor | None, batch_size: int | None) -> Tensor:
    """The mean over the nodes of a node's graph: a row for all nodes, or one for each."""
    if batch is None or batch_size is None:
        return x.mean(-2, keepdim=True)
    total = x.new_zeros(*x.shape[:-2], batch_size, x.size(-1)).index_add(-2, batch, x)
    count = x.new_zeros(batch_size).index_add(0, batch, torch.ones_like(batch, dtype=x.dtype))
    return (total / count.clamp(min=1).unsqueeze(-1)).index_select(-2, batch)


def build_norm(name: NormName, channels: int, *, scale: float = 1.0) -> nn.Module | None:
    """The normalisation of a name, for states of so many channels; `None` for `"none"`.

    `scale` is that of PairNorm; the others learn their own.

    Example:
        >>> build_norm("layer", 8)
        LayerNorm((8,), ...)
        >>> build_norm("pair-si", 8)
        PairNorm(mode='pair-si', scale=1.0)
    """
    if name == "pair" or name == "pair-si":
        return PairNorm(name, scale=scale)
    kinds: dict[str, type[nn.Module]] = {"layer": nn.LayerNorm, "batch": nn.BatchNorm1d}
    return kinds[name](channels) if name in kinds else None


def apply_norm(
    norm: nn.Module | None, x: Tensor, batch: Tensor | None, batch_size: int | None
) -> Tensor:
    """The normalised states; those that `PairNorm` makes know which graph a node belongs to."""
    if norm is None:
        return x
    normalised: Tensor = norm(x, batch, batch_size) if isinstance(norm, PairNorm) else norm(x)
    return normalised
