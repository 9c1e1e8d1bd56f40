"""Early stopping: which epoch was the best, and when to give up hoping for a better one."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from adgn._util.suggestions import unknown_name

Mode = Literal["min", "max"]


@dataclass
class EarlyStopping:
    """Follows one score over the epochs.

    Args:
        mode: `"min"`: a lower score is better; `"max"`: a higher one.
        patience: Stop when the best epoch is more than this many epochs ago; `None`: never.
        ties: Whether a score equal to the best counts as better.
        target: Stop as soon as the score is at least this good.

    Attributes:
        best: The best score so far; `None` before the first.
        best_epoch: The epoch that had it.

    Example:
        >>> stopping = EarlyStopping("min", patience=1)
        >>> [stopping.update(epoch, score) for epoch, score in enumerate([3.0, 2.0, 2.0, 5.0])]
        [True, True, True, False]
        >>> stopping.best_epoch, stopping.reason(3), stopping.reason(4)
        (2, None, 'patience')
    """

    mode: Mode
    patience: int | None = None
    ties: bool = True
    target: float | None = None
    best: float | None = None
    best_epoch: int | None = None

    def __post_init__(self) -> None:
        if self.mode not in ("min", "max"):
            raise unknown_name("mode", self.mode, ("min", "max"))
        if self.patience is not None and self.patience < 0:
            raise ValueError(f"patience={self.patience} is negative; give epochs, or None")

    def update(self, epoch: int, score: float) -> bool:
        """Takes the score of an epoch; whether it is the best so far."""
        if math.isnan(score):
            raise ValueError(f"the score of epoch {epoch} is NaN, which cannot be compared")
        sign = 1 if self.mode == "max" else -1
        better = (
            self.best is None
            or sign * score > sign * self.best
            or (self.ties and score == self.best)
        )
        if better:
            self.best, self.best_epoch = score, epoch
        return better

    def reason(self, epoch: int) -> Literal["target", "patience"] | None:
        """Why to stop after this epoch; `None`: go on."""
        if self.best is None or self.best_epoch is None:
            return None
        sign = 1 if self.mode == "max" else -1
        if self.target is not None and sign * self.best >= sign * self.target:
            return "target"
        if self.patience is not None and epoch - self.best_epoch > self.patience:
            return "patience"
        return None

    def state_dict(self) -> dict[str, Any]:
        """What changes over the epochs."""
        return {"best": self.best, "best_epoch": self.best_epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes back to a state that `state_dict` gave."""
        self.best, self.best_epoch = state["best"], state["best_epoch"]
