"""What a run gives: scores with their context, the model, and where everything is kept."""

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch_geometric
from torch import nn

from adgn._version import __version__
from adgn.host import processor
from adgn.training.batches import Split
from adgn.training.config import TrainConfig
from adgn.training.metrics import Scores
from adgn.training.tasks import PublishedValue

__all__ = ["RunResult", "environment"]


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


def environment() -> dict[str, Any]:
    """Versions and machine: what the last bits of a result depend on."""
    return {
        "adgn": __version__,
        "git_commit": _git_commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def _git_commit() -> str | None:
    """The commit that the package's own files are at, `+` behind it where they were changed."""
    folder = Path(__file__).parents[1]

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(folder), *arguments],
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip()

    # Installed into an environment inside some other repository, the files are not tracked.
    if git("ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit = git("rev-parse", "HEAD")
    return f"{commit}+" if commit and git("status", "--porcelain", "--", ".") else commit
