"""What can go wrong with a reproduction, each with a message that names the remedy."""

from pathlib import Path

from adgn.training.errors import TrainingError

__all__ = ["ReproductionError", "unwritable"]


class ReproductionError(TrainingError):
    """A reproduction cannot start or go on as asked."""


def unwritable(folder: Path, error: OSError) -> ReproductionError:
    """The error about a folder of results that cannot be made or written to.

    Example:
        >>> print(unwritable(Path("out"), PermissionError(13, "Permission denied")))
        cannot write to out: Permission denied; restore access, or choose another --out
    """
    return ReproductionError(
        f"cannot write to {folder}: {error.strerror or error}; restore access, or choose another "
        "--out"
    )
