"""What can go wrong with a reproduction."""

from pathlib import Path

from adgn.training.errors import TrainingError


class ReproductionError(TrainingError):
    """A reproduction cannot start or go on as asked."""


def unwritable(folder: Path, error: OSError) -> ReproductionError:
    """The error about a folder of results that cannot be made or written to."""
    why = f"{error.strerror or error}; restore access, or choose another --out"
    return ReproductionError(f"cannot write to {folder}: {why}")
