"""What a run gives: scores with their context, the model, and where everything is kept."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import nn

from adgn._util.environment import environment
from adgn.training.batches import Split
from adgn.training.config import TrainConfig
from adgn.training.metrics import Scores
from adgn.training.tasks import PublishedValue


@dataclass(frozen=True, eq=False)
class RunResult:
    """A finished run.

    Attributes:
        config: What was run.
        scores: For each split the scores of the best weights. The test split was looked at once,
            after training, or not at all (`evaluate_test=False`).
        best_epoch: The epoch of the best weights, from 1.
        epochs: How many epochs were run.
        stopped: `"patience"`, `"max_epochs"` or `"target"`.
        constant: The test scores of the best prediction that ignores the input.
        published: What the paper reports for this task and model, where it does.
        notes: What to know about the data before trusting a score.
        parameters: Trainable numbers per part of the model.
        seconds: Time spent in training, evaluation between epochs included.
        history: The scores of each epoch.
        model: The network with the best weights.
        run_dir: The run directory; `None` where nothing was written.
    """

    config: TrainConfig
    scores: Mapping[Split, Scores]
    best_epoch: int
    epochs: int
    stopped: str
    constant: Mapping[str, float]
    published: PublishedValue | None
    notes: tuple[str, ...]
    parameters: Mapping[str, int]
    seconds: float
    history: list[dict[str, Any]]
    model: nn.Module
    run_dir: Path | None = None

    @property
    def score(self) -> float:
        """The test score that the task is judged by."""
        if "test" not in self.scores:
            raise ValueError("the test split was not looked at: the run had evaluate_test=False")
        return self.scores["test"][self.metric]

    @property
    def metric(self) -> str:
        """The name of that score."""
        return "log10_mse" if "log10_mse" in self.scores["train"] else "accuracy"

    def to_dict(self) -> dict[str, Any]:
        """The content of result.json."""
        return {
            "task": self.config.task.name,
            "model": self.config.model.name,
            "seed": self.config.seed,
            "metric": self.metric,
            "scores": self.scores,
            "constant_predictor": dict(self.constant),
            "published": None if self.published is None else asdict(self.published),
            "best_epoch": self.best_epoch,
            "epochs": self.epochs,
            "stopped": self.stopped,
            "seconds": round(self.seconds, 3),
            "seconds_per_epoch": round(self.seconds / max(self.epochs, 1), 6),
            "parameters": dict(self.parameters),
            "notes": list(self.notes),
            "environment": environment(),
        }
