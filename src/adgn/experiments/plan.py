"""The plan of a cell: its configuration, its search, its runs, and a fingerprint of all that."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from adgn.experiments.budgets import SEARCH_SEED, Budget, find_budget
from adgn.experiments.definition import Column, Experiment, Row, Settings
from adgn.experiments.fingerprint import described_search, described_settings
from adgn.experiments.records import FORMAT, Cell, Published
from adgn.experiments.tables import find_experiment
from adgn.selection import Protocol, Run, grid_size, named_space, protocol_of
from adgn.selection.halving import planned_epochs, rungs_for
from adgn.selection.spaces import check_space, nested
from adgn.tasks.spaces import SearchSpace
from adgn.training import TrainConfig, resolve_config


@dataclass(frozen=True)
class CellPlan:
    """What is to be done for one cell under one budget."""

    experiment: Experiment
    row: Row
    column: Column
    budget_name: str
    budget: Budget

    @property
    def name(self) -> str:
        """The name of the cell's file and folder."""
        return f"{self.row.key}--{self.column.key}"

    @property
    def label(self) -> str:
        """The cell for people."""
        return f"{self.experiment.name} {self.row.key} {self.column.key}"

    @cached_property
    def fixed(self) -> dict[str, Any]:
        """Settings of the row and the column, by dotted key."""
        both = self.experiment.settings_of(self.row, self.column)
        return _dotted(self.row.settings) | _dotted(self.column.settings) | _dotted(both)

    @cached_property
    def base(self) -> TrainConfig:
        """The configuration that the cell's runs share, before anything is selected."""
        chosen = {"task": {"name": self.column.task}, "model": {"name": self.row.model}}
        # Where nothing is searched, a row with a space of its own has its first values.
        unsearched = {} if self.budget.search else {k: v[0] for k, v in self._of_row.items()}
        column = self.budget.by_column.get(self.column.key, {})
        cell = self.budget.by_cell.get(self.name, {})
        own = nested({**unsearched, **self.fixed})
        return resolve_config(chosen, own, self.budget.settings, column, cell)

    @cached_property
    def protocol(self) -> Protocol:
        """The final runs."""
        usual = protocol_of(self.base)
        return protocol_of(self.base, usual.seeds[: self.budget.seeds], self.budget.splits)

    @property
    def planned_runs(self) -> int:
        """How many final runs there are when the cell is done."""
        return 1 if self.experiment.kind == "seconds" else len(self.protocol.runs())

    @property
    def rounds(self) -> list[list[Run]]:
        """The final runs in rounds: one initialisation over all splits each."""
        runs = self.protocol.runs()
        return [[run for run in runs if run.seed == seed] for seed in self.protocol.seeds]

    @cached_property
    def _of_row(self) -> SearchSpace:
        """What the row itself searches: in place of what it fixes, not of what the column fixes."""
        of_column = _dotted(self.column.settings)
        return {key: values for key, values in self.row.space.items() if key not in of_column}

    @cached_property
    def _choices(self) -> SearchSpace:
        """What is searched, not yet checked; empty where nothing is."""
        if self.budget.search is None:
            return {}
        least = self.budget.search.least.get(self.row.model, {})
        named = named_space(self.budget.search.space, self.column.task, self.row.model)
        free = {
            key: [value for value in values if key not in least or value >= least[key]]
            for key, values in named.items()
            if key not in self.fixed
        }
        free |= self._of_row
        one = next(iter(named))  # where nothing is free, a study of the one configuration
        return free or {one: [self.fixed[one]]}

    @cached_property
    def space(self) -> SearchSpace | None:
        """What is searched: what the row or column fixes is not."""
        if not self._choices:
            return None
        return check_space(self._choices, self.base.model_dump(mode="json"))

    @cached_property
    def settings_source(self) -> "CellPlan | None":
        """The cell whose selected settings this one takes over; `None` where it has its own."""
        source = self.experiment.settings_from
        if source is None or self.budget.search is not None:
            return None
        column = self.column.group or self.column.key
        return plan_cell(source, self.row.key, column, self.budget_name)

    def config(self, settings: Mapping[str, Any], run: Run) -> TrainConfig:
        """The configuration of a run."""
        return resolve_config(self.base, nested(settings), run.settings())

    @property
    def tried(self) -> int:
        """How many configurations the search tries."""
        search = self.budget.search
        if search is None:
            return 0
        size = grid_size(self._choices)  # checking every value would take a list of cells seconds
        return min(search.trials or size, size)

    @property
    def _is_solved(self) -> bool:
        """Whether a run is one epoch, as the readout is not trained but solved."""
        return self.base.model.options.get("readout") == "ridge"

    @cached_property
    def search_epochs(self) -> int:
        """How many epochs the search trains, without early stopping."""
        search = self.budget.search
        if search is None:
            return 0
        usual = protocol_of(self.base)
        protocol = protocol_of(self.base, usual.seeds[: search.seeds], search.splits)
        runs, most = len(protocol.runs()), search.max_epochs or self.base.loop.max_epochs
        if self._is_solved:
            return self.tried * runs
        if search.prune == "none":
            return self.tried * runs * most
        rungs = rungs_for(self.base, runs, search.first_rung, max_epochs=most)
        return sum(planned_epochs(self.tried, rungs))

    def seconds_left(self, cell: Cell | None) -> float | None:
        """About how long the cell will take from here on, one thread; `None`: not known."""
        usual, epoch = self.budget.seconds_per_cell, self.budget.seconds_of_epoch(self.column.key)
        per_run = 1 if self._is_solved else self.budget.epochs_per_run
        if per_run is not None and epoch is not None:
            usual = self.planned_runs * per_run * epoch
        if cell is not None and self.next_step(cell) is None:
            return 0.0
        runs = () if cell is None else cell.runs
        times = [run.seconds for run in runs if run.seconds is not None]
        if times:  # measured ones are better than the usual ones
            return sum(times) / len(times) * (self.planned_runs - len(runs))
        if usual is None or self.budget.study_per_cell:
            return None
        epochs = 0 if cell is not None and cell.search is not None else self.search_epochs
        if epochs == 0:
            return usual
        return None if epoch is None else usual + epochs * epoch

    def taken_over(self, source: Cell) -> dict[str, Any]:
        """The settings that it takes over from the cell of `settings_source`.

        Empty where nothing is selected yet by the definition of now.
        """
        of = self.settings_source
        if of is None or source.fingerprint != of.fingerprint:
            return {}
        settings = source.settings.items()
        return {k: value for k, value in settings if k in self._of_row or k not in self.fixed}

    def published(self) -> Published | None:
        """The paper's number."""
        return self.experiment.published(self.row, self.column, self.base)

    def new_cell(self) -> Cell:
        """The cell before anything was done."""
        return Cell(
            format=FORMAT,
            experiment=self.experiment.name,
            row=self.row.key,
            column=self.column.key,
            budget=self.budget_name,
            status="waiting",
            fingerprint=self.fingerprint,
            planned_runs=self.planned_runs,
            published=self.published(),
        )

    def next_step(self, cell: Cell) -> int | None:
        """The step to be done next: 0 finds the settings, k is the k-th round; `None`: all is done.

        A failed cell goes on where it failed.
        """
        if self.budget.study_per_cell or self.experiment.kind == "seconds":
            return None if cell.status == "done" else 0
        if cell.search is None:
            return 0
        numbers = range(1, len(self.rounds) + 1)
        return next((number for number in numbers if self.missing_runs(cell, number)), None)

    def missing_runs(self, cell: Cell, number: int) -> list[Run]:
        """The runs of a round, counted from 1, that a cell does not have yet."""
        there = {(run.seed, run.split) for run in cell.runs}
        return [run for run in self.rounds[number - 1] if (run.seed, run.split) not in there]

    @cached_property
    def fingerprint(self) -> str:
        """Changes with everything that scores depend on, and with nothing else."""
        # Words and estimates do not count, and the settings are part of the configuration above.
        experiment, search = self.experiment, self.budget.search
        budget = {
            "search": None if search is None else [described_search(search), SEARCH_SEED],
            "seeds": self.budget.seeds,
            "splits": self.budget.splits,
            "whole_selection": self.budget.study_per_cell,  # so named in cells that are there
            "timed_epochs": self.budget.timed_epochs,
        }
        about = {
            "format": FORMAT,
            "experiment": [experiment.name, experiment.kind, experiment.settings_from],
            "metric": [experiment.metric.name, experiment.metric.split],
            "cell": [self.row.key, self.column.key],
            "fixed": self.fixed,
            "budget": [self.budget_name, budget],
            "space": self.space,
            "protocol": self.protocol.model_dump(mode="json"),
            "config": described_settings(self.base),
        }
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:32]


def _dotted(settings: Settings) -> dict[str, Any]:
    """Settings by section as ones by dotted key; a value that is a mapping stays whole."""
    return {
        f"{section}.{key}": value
        for section, values in settings.items()
        for key, value in values.items()
    }


def planned_columns(experiment: Experiment, budget: Budget) -> tuple[Column, ...]:
    """The columns of an experiment that a budget fills."""
    layers, keys = budget.layers, budget.columns
    return tuple(
        column
        for column in experiment.columns
        if (layers is None or column.layers in layers) and (keys is None or column.key in keys)
    )


def is_outdated(cell: Cell, cells: Mapping[tuple[str, str, str], Cell] | None = None) -> bool:
    """Whether a cell was measured with another definition than it has now.

    Of a cell without a fingerprint, or of a table that is not known here, nothing can be told.
    `cells`, by experiment, row and column, are those that it may have taken its settings over from:
    where it would take over others now, it is outdated.
    """
    if cell.fingerprint is None:
        return False
    try:
        plan = plan_cell(cell.experiment, cell.row, cell.column, cell.budget)
    except (ValueError, KeyError):  # no such name here
        return False
    if cell.fingerprint != plan.fingerprint:
        return True
    source = plan.settings_source
    if source is None or cell.search is None or cells is None:
        return False
    selected = cells.get((source.experiment.name, source.row.key, source.column.key))
    if selected is None or selected.fingerprint is None:  # not among these results
        return False
    return cell.settings != plan.taken_over(selected)


def plan_cell(experiment: str, row: str, column: str, budget: str) -> CellPlan:
    """The plan of a cell, by names."""
    found, spent = find_experiment(experiment), find_budget(budget, experiment)
    return CellPlan(found, found.row(row), found.column(column), budget, spent)
