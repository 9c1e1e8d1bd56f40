"""What is known before anything runs: the data, the constant predictor, and the table's outline."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import torch

from adgn._util.progress import ProgressCallback
from adgn.data import NODE_DATASETS, prepare
from adgn.data.property import prepare_property
from adgn.data.root import data_root
from adgn.data.supplied import is_available
from adgn.experiments.budgets import find_budget
from adgn.experiments.definition import Experiment, row_notes
from adgn.experiments.plan import CellPlan, planned_columns
from adgn.experiments.records import (
    FORMAT,
    Budget,
    Moments,
    Outline,
    Planned,
    Published,
    Quoted,
    Row,
)
from adgn.tasks.properties import PropertyConfig
from adgn.tasks.protocols import protocol_sentence, published_protocol
from adgn.tasks.trees import TreeConfig
from adgn.training import shared_data
from adgn.training.tasks import task_entry

SMOKE_NOTE = "This is a check that everything works: the numbers mean nothing."


def prepare_data(plans: Sequence[CellPlan], progress: ProgressCallback | None = None) -> None:
    """Makes all data sets of some cells ready, once, before workers ask for them."""
    for name in dict.fromkeys(plan.column.task for plan in plans):
        if name in NODE_DATASETS:
            prepare(name)
    tasks = (plan.base.task for plan in plans)
    for settings in dict.fromkeys(t.settings() for t in tasks if isinstance(t, PropertyConfig)):
        prepare_property(settings, None, progress)


def constant_predictor(plans: Sequence[CellPlan]) -> dict[str, Moments]:
    """The score of the best prediction that ignores the input, by column (by group for depths).

    Trees need no data to know it: theirs is there for all columns, asked for or not.
    """
    trees = [
        replace(plan, column=column)
        for plan in plans
        if isinstance(plan.base.task, TreeConfig)
        for column in planned_columns(plan.experiment, plan.budget)
    ]
    constant: dict[str, Moments] = {}
    for plan in (*plans, *trees):
        key = plan.column.dataset
        if key not in constant and plan.experiment.kind != "seconds":
            constant[key] = Moments(mean=_constant(plan))
    return constant


def _constant(plan: CellPlan) -> float:
    task = plan.base.task
    if isinstance(task, TreeConfig):
        # Each permutation is asked with every key, so that all 2^radius answers are as frequent.
        return 0.5**task.radius
    build, device = task_entry(task.name).build, torch.device("cpu")
    with shared_data():
        return fmean(
            build(plan.config({}, run), device, None).constant[plan.experiment.metric.name]
            for run in plan.rounds[0]
        )


def without_data(experiment: Experiment) -> dict[str, str]:
    """Columns whose data set needs a file that is not there, by key, with a word about it."""
    found = {}
    for column in experiment.columns:
        if column.task in NODE_DATASETS and not is_available(column.task):
            entry = NODE_DATASETS[column.task]
            place = data_root() / entry.file
            found[column.key] = f"no file {place}; it is to be had from {entry.origin}"
    return found


def outline(
    experiment: Experiment,
    budget_name: str,
    rows: set[str],
    constant: Mapping[str, Moments],
    left_out: Collection[str] = (),
) -> Outline:
    """The content of experiment.json.

    `rows` are keys of those that are run; the published values of others are quoted. `constant` is
    the constant predictor by column, or by group of columns. `left_out` are keys of columns.
    """
    budget = find_budget(budget_name, experiment.name)
    columns = tuple(c for c in planned_columns(experiment, budget) if c.key not in left_out)
    quoted: dict[str, Mapping[str, Moments]] = dict(experiment.quoted)
    planned: list[Planned] = []
    shown: list[Row] = []
    for row in experiment.rows:
        plans = [CellPlan(experiment, row, column, budget_name, budget) for column in columns]
        published = {plan.column.key: plan.published() for plan in plans}
        if row.key not in rows:
            if any(published.values()):
                quoted[row.title] = {key: cell for key, cell in published.items() if cell}
            continue
        shown.append(row.model_copy(update={"notes": tuple(_notes(plans, published))}))
        for plan in plans:
            key, runs = plan.column.key, plan.planned_runs
            cell = Planned(row=row.key, column=key, planned_runs=runs, published=published[key])
            planned.append(cell)
    predicted = dict.fromkeys(column.dataset for column in columns)
    return Outline(
        format=FORMAT,
        name=experiment.name,
        title=experiment.title,
        summary=experiment.summary,
        kind=experiment.kind,
        budget=Budget(name=budget_name, text=budget.text),
        metric=experiment.metric,
        rows=tuple(shown),
        columns=columns,
        notes=(*([SMOKE_NOTE] if budget_name == "smoke" else []), *experiment.notes),
        cells=tuple(planned),
        constant={key: constant[key] for key in predicted if key in constant},
        quoted=tuple(
            Quoted(
                title=title,
                values=dict(values),
                group=experiment.quoted_groups.get(title, ""),
                notes=_quoted_notes(experiment, title),
            )
            for title, values in quoted.items()
        ),
    )


def _notes(plans: Sequence[CellPlan], published: Mapping[str, Published | None]) -> list[str]:
    there = next((plan for plan in plans if published[plan.column.key]), plans[0])
    value = published[there.column.key]
    title = None if value is None else value.row
    return row_notes(there.row, there.experiment.table, title, there.base)


def _quoted_notes(experiment: Experiment, title: str) -> tuple[str, ...]:
    if experiment.table is None:
        return ()
    protocol = published_protocol(experiment.table, title)
    return protocol_sentence(protocol), *protocol.remarks
