"""How far a training run is, and what is called on the way."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adgn.training.trainer import Trainer


@dataclass
class Progress:
    """How far a run is: whole epochs and passes, and batches of the pass under way."""

    epoch: int = 0
    passes: int = 0
    batch: int = 0
    loss_sum: float = 0.0
    size_sum: int = 0
    seconds: float = 0.0


class Callback:
    """Called in the course of a training run; override what is of interest."""

    def on_step(self, trainer: "Trainer") -> None:
        """After a step of the optimiser; of a readout in closed form, after a train batch."""

    def on_epoch(self, trainer: "Trainer", line: Mapping[str, Any]) -> None:
        """After an epoch, with its scores."""
