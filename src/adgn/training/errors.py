"""What can go wrong with a run, each with a message that names the remedy."""


class TrainingError(RuntimeError):
    """A run cannot start, go on or end as asked.

    Attributes:
        epoch: The epoch (counted from 1) that was under way, where there was one.
    """

    def __init__(self, message: str, epoch: int | None = None) -> None:
        super().__init__(message)
        self.epoch = epoch


class ConfigError(TrainingError, ValueError):
    """A configuration has an unknown key, a wrong value, or does not fit its task or model."""


class RunError(TrainingError):
    """A run directory cannot be used: it exists, is locked, unwritable, or of another kind."""


class DamagedRunError(RunError):
    """A file of a run directory is missing, truncated or changed."""


class DivergedError(TrainingError, ValueError):
    """The loss, a score, a weight or a state of the network is no longer a finite number."""


class Interrupted(TrainingError):  # noqa: N818 - it is a request that was met, not a mistake
    """Training was stopped on request, at a place from which it can go on."""
