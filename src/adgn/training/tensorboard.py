"""TensorBoard events of a run, for those who ask for them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from adgn.training.errors import ConfigError
from adgn.training.progress import Callback
from adgn.training.trainer import Trainer


class TensorBoardCallback(Callback):
    """Writes the scores of every epoch as TensorBoard scalars.

    Args:
        folder: Where the event files go. Events of a run that goes on are added; those that were
            written after its latest state are hidden by TensorBoard.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ConfigError(
                "TensorBoard is not installed; install it with `pip install 'adgn[tensorboard]'`, "
                "or leave --tensorboard out"
            ) from error
        self._make: Any = SummaryWriter
        self._folder = folder
        self._writer: Any = None

    def on_epoch(self, trainer: Trainer, line: Mapping[str, Any]) -> None:
        """Adds the scores of an epoch."""
        epoch = line["epoch"]
        if self._writer is None:
            self._writer = self._make(str(self._folder), purge_step=epoch)
        for name, value in line.items():
            if isinstance(value, Mapping):
                for score, number in value.items():
                    self._writer.add_scalar(f"{name}/{score}", number, epoch)
            elif name not in ("epoch", "best"):
                self._writer.add_scalar(name, value, epoch)

    def close(self) -> None:
        """Writes what is left."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def event_writer(run_dir: Path) -> Iterator[list[Callback]]:
    """The callback for a run directory, closed at the end."""
    callback = TensorBoardCallback(run_dir / "tensorboard")
    try:
        yield [callback]
    finally:
        callback.close()
