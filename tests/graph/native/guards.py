"""Tensors with guard cells around them."""

import torch
from torch import Tensor

from adgn.graph import CSR

MARGIN = 4096  # bytes on either side; keeps the alignment of torch's own memory
FILL = 0xFF  # a NaN in every float, an index out of range in every integer


class Guards:
    """Hands out tensors in the middle of larger ones that are NaN (integers: -1) all around.

    Whoever reads from beyond such a tensor and uses what is there gets another result; whoever
    writes beyond it is told by `untouched`. Serves in place of `adgn.graph.native.library.buffers`.

    Args:
        shift: By how many numbers tensors made by `around` miss torch's alignment.
    """

    def __init__(self, shift: int = 0) -> None:
        self.shift = shift
        self._wholes: list[tuple[Tensor, slice]] = []

    def around(self, content: Tensor) -> Tensor:
        """A guarded copy."""
        inside = self._inside(content.numel(), content.dtype, self.shift)
        return inside.copy_(content.reshape(-1)).view(content.shape)

    def empty(self, library: object, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """A guarded tensor that is NaN itself, so that nobody relies on what was there before."""
        return self._inside(torch.Size(shape).numel(), dtype, 0).view(shape)

    def untouched(self) -> bool:
        """Whether everything outside of the tensors is as it was."""
        return all(
            bool((whole[: place.start] == FILL).all() and (whole[place.stop :] == FILL).all())
            for whole, place in self._wholes
        )

    def _inside(self, count: int, dtype: torch.dtype, shift: int) -> Tensor:
        start = MARGIN + shift * dtype.itemsize
        place = slice(start, start + count * dtype.itemsize)
        whole = torch.full((place.stop + MARGIN,), FILL, dtype=torch.uint8)
        self._wholes.append((whole, place))
        return whole[place].view(dtype)


class Unguarded(Guards):
    """The same without guards."""

    def around(self, content: Tensor) -> Tensor:
        return content.clone()


def guarded_csr(guards: Guards, csr: CSR) -> CSR:
    return CSR(guards.around(csr.rowptr), guards.around(csr.col), csr.shape)
