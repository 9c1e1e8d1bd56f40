"""What can go wrong with a study, each with a message that names the remedy."""

from adgn.training.errors import TrainingError


class SelectionError(TrainingError):
    """A study cannot start, go on or end as asked."""


class SpaceError(SelectionError, ValueError):
    """A space has an unknown key, an empty list or a value that a configuration refuses."""


class StorageError(SelectionError):
    """A storage cannot be reached or is not one that several workers can share."""


class StudyMismatchError(SelectionError):
    """A study of this name exists for another task, model, space or protocol."""


class ExecutorError(SelectionError):
    """Workers cannot be started, or die again and again."""
