"""The paper's tables and figures from beginning to end."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from adgn._util.environment import available_cores
from adgn._util.processes import terminate_as_interrupt
from adgn._util.suggestions import unknown_name
from adgn.data.root import ROOT_VARIABLE, data_root
from adgn.experiments.budgets import BUDGETS, find_budget
from adgn.experiments.driver import Driver, Job, ReproductionCallback
from adgn.experiments.errors import ReproductionError, unwritable
from adgn.experiments.outline import constant_predictor, outline, prepare_data, without_data
from adgn.experiments.plan import CellPlan, planned_columns
from adgn.experiments.results import ResultsDirectory
from adgn.experiments.tables import EXPERIMENTS, find_experiment
from adgn.selection.api import check_place
from adgn.selection.executors import check_workers
from adgn.selection.storage import shown_url

ROOT = Path("reproduction")


@dataclass(frozen=True)
class Reproduction:
    """What a call of `reproduce` left behind: the results directory, and the cells asked for."""

    path: Path
    jobs: tuple[Job, ...]
    moved: tuple[Path, ...]  # folders with results of other definitions
    left_out: Mapping[str, str] = field(default_factory=dict)  # columns without data, and why

    @property
    def failed(self) -> list[Job]:
        """The cells that failed."""
        return [job for job in self.jobs if job.cell.status == "failed"]


def plan_cells(
    experiments: Sequence[str] = (),
    budget: str = "laptop",
    models: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> list[CellPlan]:
    """The cells of experiments under a budget, in the order of the tables; see `reproduce`."""
    if budget not in BUDGETS:
        raise unknown_name("budget", budget, BUDGETS)
    found = [find_experiment(name) for name in dict.fromkeys(experiments or EXPERIMENTS)]
    rows = {word for one in found for row in one.rows for word in (row.key, row.model)}
    keys = {column.key for one in found for column in one.columns}
    for what, given, known in (("model", models, rows), ("column", columns, keys)):
        for name in given or ():
            if name not in known:
                raise unknown_name(what, name, known)
    plans = [
        CellPlan(one, row, column, budget, find_budget(budget, one.name))
        for one in found
        for row in one.rows
        for column in planned_columns(one, find_budget(budget, one.name))
    ]
    planned = dict.fromkeys(plan.column.key for plan in plans)
    for name in columns or ():
        if name not in planned:
            raise ReproductionError(
                f"column={name!r} is not part of the budget {budget!r}, which has "
                f"{', '.join(planned)}; choose one of them, or another budget"
            )
    plans = [
        plan
        for plan in plans
        if (models is None or _is_meant(plan, models))
        and (columns is None or plan.column.key in columns)
    ]
    # Where experiments are named, each of them is meant.
    left = {plan.experiment.name for plan in plans}
    empty = [f"experiment {one.name!r}" for one in found if experiments and one.name not in left]
    if empty or not plans:
        raise ReproductionError(
            f"models={models!r}, columns={columns!r} leave nothing of the "
            f"{empty[0] if empty else 'reproduction'}; `adgn reproduce --list` names its rows and "
            "columns"
        )
    return plans


def _is_meant(plan: CellPlan, models: Sequence[str]) -> bool:
    """Whether a row is one of some names: its key, or its model where no row has that key."""
    keys = {row.key for row in plan.experiment.rows}
    return plan.row.key in models or (plan.row.model in models and plan.row.model not in keys)


def reproduce(
    experiments: Sequence[str] = (),
    *,
    budget: str = "laptop",
    models: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    out: str | Path | None = None,
    workers: int | None = None,
    rounds: int | None = None,
    retry_failed: bool = False,
    root: str | Path | None = None,
    executor: Literal["local", "ray"] = "local",
    ray_address: str | None = None,
    storage: str | None = None,
    callback: ReproductionCallback | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Reproduction:
    """Measures tables and figures of the paper, cell by cell.

    Called again, it goes on where it was stopped, in whatever way; a cell that was measured with
    the same definition is not measured again.

    Args:
        experiments: Names; by default all.
        budget: `"smoke"` (minutes, numbers mean nothing), `"laptop"`, or `"paper"`.
        models: Keys of rows, or names of models for all their rows; by default all.
        columns: Keys of columns; by default all whose data can be had. A column whose data set
            needs a file that you have not supplied is left out, see `Reproduction.left_out`.
        out: The results directory; by default `reproduction/BUDGET`.
        workers: Steps that run at a time, one thread each; by default one per core.
        rounds: Stop after this many initialisations of each cell; by default all.
        retry_failed: Try cells again that failed.
        root: The data root.
        executor: For the budget `"paper"`: `"local"` or `"ray"`.
        ray_address: For the budget `"paper"`: the Ray cluster.
        storage: For the budget `"paper"`: a database URL for the studies.
        callback: Told what happens.
        progress: Told how far the preparation of data is.
    """
    if rounds is not None and rounds < 1:
        raise ReproductionError(f"rounds={rounds} is not valid; give at least 1")
    cores = available_cores()
    count = cores if workers is None else workers
    check_workers(count)
    plans = plan_cells(experiments, budget, models, columns)
    place: dict[str, Any] = {"executor": executor, "ray_address": ray_address, "storage": storage}
    if budget == "paper":
        if rounds is not None:
            raise ReproductionError(
                f"rounds={rounds!r} has no effect with budget='paper', whose cells are whole "
                "studies; leave it out"
            )
        check_place(workers=count, **place)
    else:
        for name, value in place.items():
            if value not in (None, "local"):
                shown = shown_url(value) if name == "storage" else value
                raise ReproductionError(f"{name}={shown!r} has no effect without budget='paper'")
    for plan in plans:
        _ = plan.fingerprint, plan.rounds  # resolves configurations, spaces and protocols
    results = ResultsDirectory(out if out is not None else ROOT / budget)
    with _data_root(root), terminate_as_interrupt() as asked_to_stop:
        plans, left_out = with_data(plans)
        names = list(dict.fromkeys(plan.experiment.name for plan in plans))
        results.open(budget)
        with _held(results):
            prepare_data(plans, progress)
            known = {name: {p.name for p in plan_cells([name], budget)} for name in names}
            unknown = [path for name in names for path in results.move_unknown(name, known[name])]
            # Before the cells: a report at any moment finds each of them in its table.
            _write_outlines(results, budget, plans)
            jobs, moved = _begin(results, plans, rounds, retry_failed)
            results.add_experiments(budget, names)
            driver = Driver(results, jobs, callback or ReproductionCallback(), asked_to_stop)
            driver.run("alone", 1, cores)
            for job in jobs:
                if job.plan.budget.study_per_cell and job.step is not None:
                    driver.run_here(job, workers=count, **place)
            driver.run("together", count, 1)
    return Reproduction(results.path, tuple(jobs), (*unknown, *moved), left_out)


def with_data(plans: Sequence[CellPlan]) -> tuple[list[CellPlan], dict[str, str]]:
    """The cells whose data can be had, and the columns that are left out, with a word about each.

    Raises:
        ReproductionError: No cell is left.
    """
    experiments = {plan.experiment.name: plan.experiment for plan in plans}
    missing = {name: without_data(one) for name, one in experiments.items()}
    left = [plan for plan in plans if plan.column.key not in missing[plan.experiment.name]]
    words = {
        plan.column.key: missing[plan.experiment.name][plan.column.key]
        for plan in plans
        if plan.column.key in missing[plan.experiment.name]
    }
    if not left:
        told = "; ".join(f"column={key!r} has {word}" for key, word in words.items())
        raise ReproductionError(f"nothing is left to do: {told}")
    return left, words


def _begin(
    results: ResultsDirectory, plans: Sequence[CellPlan], rounds: int | None, retry: bool
) -> tuple[list[Job], list[Path]]:
    jobs: list[Job] = []
    moved = []
    # Sources of settings first: what took them over is outdated once they are something else.
    in_order = sorted(enumerate(plans), key=lambda entry: entry[1].settings_source is not None)
    for number, plan in in_order:
        source = plan.settings_source
        searches = source is not None and any(
            job.step == 0 and job.plan.label == source.label for job in jobs
        )
        cell, aside = results.begin(plan, source_searches=searches)
        jobs.append(Job(plan, cell, number, rounds, retry and cell.status == "failed"))
        moved += [] if aside is None else [aside]
    return sorted(jobs, key=lambda job: job.number), moved


def _write_outlines(results: ResultsDirectory, budget: str, plans: Sequence[CellPlan]) -> None:
    for name in dict.fromkeys(plan.experiment.name for plan in plans):
        mine = [plan for plan in plans if plan.experiment.name == name]
        rows = {plan.row.key for plan in mine} | results.recorded_rows(name)
        constant = results.recorded_constant(name) | constant_predictor(mine)
        experiment = find_experiment(name)
        left_out = without_data(experiment).keys() - results.recorded_columns(name)
        results.write_outline(outline(experiment, budget, rows, constant, left_out))


@contextmanager
def _held(results: ResultsDirectory) -> Iterator[None]:
    lock = FileLock(results.path / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ReproductionError(
            f"another `adgn reproduce` is at work in {results.path}; wait for it, or choose "
            "another --out"
        ) from None
    except OSError as error:
        raise unwritable(results.path, error) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _data_root(root: str | Path | None) -> Iterator[None]:
    """The data root in the environment, so that workers and configurations need not name it."""
    before = os.environ.get(ROOT_VARIABLE)
    if root is not None:
        os.environ[ROOT_VARIABLE] = str(data_root(root))
    try:
        yield
    finally:
        os.environ.pop(ROOT_VARIABLE, None)
        if before is not None:
            os.environ[ROOT_VARIABLE] = before
