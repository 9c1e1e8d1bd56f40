import shlex

import pytest

from adgn.experiments.api import plan_cells
from adgn.experiments.tables import EXPERIMENTS
from adgn.report import read_results, reproduce_command
from tests.report.sample import build_results, cell, column, experiment, measured

METRIC = {"name": "accuracy", "title": "accuracy", "higher_is_better": True, "unit": "%"}


def table_of(folder, name, rows, runs, begun=None):
    """An experiment of four planned runs per cell, with as many runs as its cell shall have."""

    def build():
        definition = experiment(
            name, "scores", METRIC, [(key, key) for key in rows], [column("a"), column("b")]
        )
        cells = [
            measured(definition, key, where, 0.5, 0.1, runs=count)
            if key in (begun or rows)
            else cell(definition, key, where)
            for key in rows
            for where, count in zip(("a", "b"), runs, strict=True)
        ]
        return definition, cells

    (table,) = read_results(build_results(folder / "r", [build])).tables
    return table


def parsed(command):
    """The command's options as `adgn reproduce` takes them."""
    words = shlex.split(command)
    assert words[:2] == ["adgn", "reproduce"]
    options = dict(zip(words[3::2], words[4::2], strict=True))
    models = options.pop("--models", None)
    return words[2], models and models.split(","), options


def test_all_rows_and_all_runs_need_no_option(tmp_path):
    rows = [row.key for row in EXPERIMENTS["heterophily"].rows]
    table = table_of(tmp_path, "heterophily", rows, (4, 4))
    assert reproduce_command(table) == "adgn reproduce heterophily --budget laptop"


@pytest.mark.parametrize(
    ("name", "rows"),
    [("property", ["adgn-ws", "gin", "gcnii"]), ("benchmarks", ["adgn-gcn", "dagnn"])],
)
def test_the_rows_that_were_measured_and_no_others(tmp_path, name, rows):
    table = table_of(tmp_path, name, [*rows, "gat"], (4, 4), begun=rows)
    experiment_name, models, options = parsed(reproduce_command(table))
    plans = plan_cells([experiment_name], options.pop("--budget"), models)
    assert {plan.row.key for plan in plans} == set(rows)
    assert options == {}


def test_the_columns_that_were_measured_and_no_others(tmp_path):
    def build():
        rows = [(row.key, row.title) for row in EXPERIMENTS["trees"].rows]
        columns = [column(one.key) for one in EXPERIMENTS["trees"].columns]
        definition = experiment("trees", "scores", METRIC, rows, columns)
        cells = [
            measured(definition, key, where, 0.5, 0.1, runs=4)
            for key, _ in rows
            for where in ("radius-2", "radius-4")
        ]
        return definition, cells

    (table,) = read_results(build_results(tmp_path / "r", [build])).tables
    command = "adgn reproduce trees --budget laptop --columns radius-2,radius-4"
    assert reproduce_command(table) == command


@pytest.mark.parametrize(("runs", "rounds"), [((2, 2), "2"), ((1, 3), "3"), ((2, 4), None)])
def test_the_rounds_that_were_made(tmp_path, runs, rounds):
    _, _, options = parsed(reproduce_command(table_of(tmp_path, "property", ["gcn"], runs)))
    assert options.get("--rounds") == rounds
