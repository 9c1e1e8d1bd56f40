"""How callers are told how far something is."""

from collections.abc import Callable

ProgressCallback = Callable[[int, int], None]  # told how much is done, and of how much
