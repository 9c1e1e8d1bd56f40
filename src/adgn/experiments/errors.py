"""What can go wrong with a reproduction, each with a message that names the remedy."""

from adgn.training.errors import TrainingError

__all__ = ["ReproductionError"]


class ReproductionError(TrainingError):
    """A reproduction cannot start or go on as asked."""
