"""What a study is about; kept in the study itself, so that every worker knows it."""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from adgn.selection.errors import SelectionError, StudyMismatchError
from adgn.selection.halving import Rung
from adgn.selection.protocols import Protocol, Run
from adgn.selection.spaces import grid_size, nested
from adgn.tasks.spaces import SearchSpace
from adgn.training import OBJECTIVES, TrainConfig, resolve_config
from adgn.training.config import config_differences
from adgn.training.tasks import task_entry

Search = Literal["grid", "random", "tpe"]
Prune = Literal["asha", "halving", "none"]
DEFAULT_TRIALS = 50  # of a random or TPE search


class StudyDefinition(BaseModel):
    """A study: the task and model, the space, the protocol and how it is searched.

    Attributes:
        settings: The configuration that all trials share, with every setting.
        space_name: What the space is called.
        space: The lists of values.
        protocol: What a trial is.
        search: How configurations are proposed.
        prune: Whether trials that look bad after some of their runs, or epochs, are stopped.
        first_rung: The epochs of the first rung of halving, where they were chosen.
        rungs: With halving: how far configurations train before they are compared.
        trials: How many trials a random or TPE search has; `None` for a grid.
        seed: Of the search.
        plugins: Files and modules of the user that were loaded; whoever goes on loads them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, ignored_types=(cached_property,))

    format: Literal[1] = 1
    settings: dict[str, Any]
    space_name: str
    space: dict[str, list[Any]]
    protocol: Protocol
    search: Search = "grid"
    prune: Prune = "none"
    first_rung: int | None = None
    rungs: tuple[Rung, ...] = ()
    trials: int | None = None
    seed: int = 0
    plugins: tuple[str, ...] = ()

    @cached_property
    def base(self) -> TrainConfig:
        """The configuration that all trials share."""
        return resolve_config(self.settings)

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.base.task.name

    @property
    def metric(self) -> str:
        """The score that configurations are compared by."""
        return self.base.stopping.monitor or OBJECTIVES[task_entry(self.task).objective].monitor

    @property
    def metric_split(self) -> str:
        """The split that it is measured on: validation, or train where there is no other."""
        return self.base.stopping.split

    @property
    def maximize(self) -> bool:
        """Whether a higher score is better."""
        return OBJECTIVES[task_entry(self.task).objective].modes[self.metric] == "max"

    @property
    def budget(self) -> int:
        """How many trials the study has when it is over."""
        size = grid_size(self.space)
        if self.search == "grid":
            return size if self.trials is None else min(self.trials, size)
        return min(DEFAULT_TRIALS if self.trials is None else self.trials, size)

    def config(self, params: Mapping[str, Any], run: Run) -> TrainConfig:
        """The configuration of a run of a trial."""
        return resolve_config(self.settings, nested(params), run.settings())

    def largest(self) -> TrainConfig:
        """The configuration with the largest number of every list, which needs most memory."""
        numbers = {
            key: [value for value in values if isinstance(value, int | float)]
            for key, values in self.space.items()
        }
        params = {key: max(numbers[key], default=values[0]) for key, values in self.space.items()}
        return self.config(params, self.protocol.runs()[0])

    def check(self) -> None:
        """Raises where the parts do not fit each other."""
        if self.trials is not None and self.trials < 1:
            raise SelectionError(f"trials={self.trials} is not valid; give at least 1")
        if self.prune == "asha" and len(self.protocol.runs()) < 2:
            raise SelectionError(
                "prune='asha' compares configurations after 1, 3, 9 … of their runs, but a trial "
                f"of {self.task!r} is a single run here; use prune='none', or give several seeds"
            )

        if self.prune == "halving" and self.search == "tpe":
            raise SelectionError(
                "prune='halving' begins with all configurations, which search='tpe' does not know "
                "beforehand; use search='grid' or 'random'"
            )
        chosen = [key for key in ("loop.max_epochs", "loop.evaluate_every") if key in self.space]
        if self.prune == "halving" and chosen:
            raise SelectionError(
                f"prune='halving' compares configurations after as many epochs each; take "
                f"{chosen[0]} out of the space, or use prune='none'"
            )
        if self.first_rung is not None and self.prune != "halving":
            raise SelectionError(
                f"first_rung={self.first_rung} has no effect with prune={self.prune!r}; use "
                "prune='halving'"
            )

    def check_same(self, name: str, other: "StudyDefinition") -> None:
        """Raises unless `other` continues this study; only the number of trials may change."""
        # The rungs follow from the rest, by a rule that another version may have changed.
        free = {"trials", "space_name", "plugins", "rungs", "settings"}
        # A setting that was added since the study began has its default in both.
        ours, theirs = (
            {**d.model_dump(exclude=free), "settings": d.base.model_dump(mode="json")}
            for d in (self, other)
        )
        differences = config_differences(ours, theirs)
        if differences:
            cut = (line if len(line) <= 120 else f"{line[:120]}…" for line in differences[:3])
            shown = "; ".join(cut)
            raise StudyMismatchError(
                f"the study {name!r} exists with other settings ({shown}"
                f"{' …' if len(differences) > 3 else ''}); give another --study name, or leave out "
                "what it was started with: `adgn select --study NAME` goes on"
            )


def params_key(params: Mapping[str, Any], space: SearchSpace) -> str | None:
    """A name for a configuration that says which one it is; `None` while it is incomplete."""
    if any(key not in params for key in space):
        return None
    text = json.dumps({key: params[key] for key in sorted(space)})
    return hashlib.sha256(text.encode()).hexdigest()[:16]
