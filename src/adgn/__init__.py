"""Anti-symmetric deep graph networks: distant nodes of a graph talk to each other."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adgn.training import RunResult, TrainConfig, Trainer, resume, train

__version__ = version("adgn")

__all__ = ["RunResult", "TrainConfig", "Trainer", "__version__", "resume", "train"]


def __getattr__(name: str) -> Any:
    """Training is loaded when first asked for: it brings all data sets and models along."""
    if name in __all__:
        from adgn import training

        return getattr(training, name)
    raise AttributeError(f"module 'adgn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
