"""Cells whose definition has changed since they were measured are told from the others."""

import csv
import io
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from adgn.cli.app import app
from adgn.experiments.outline import outline
from adgn.experiments.plan import is_outdated, plan_cell
from adgn.experiments.records import Cell, SearchRecord
from adgn.experiments.results import ResultsDirectory
from adgn.experiments.tables import find_experiment
from adgn.report import Results, headline_table, html_page, markdown_report, read_results
from adgn.report.charts import depth_charts, dot_charts
from adgn.report.csvfile import csv_table
from adgn.report.details import cell_view
from adgn.report.grid import grids
from adgn.report.latex import latex_grid
from adgn.report.verdict import verdict
from tests.report.sample import build_results, cell, measured, property_table

ROW, COLUMN = "gcn", "sssp"


def results_with(folder, fingerprint, **more):
    """A table with one measured cell, and one that waits and was never measured."""

    def table():
        definition, _ = property_table()
        one = measured(definition, ROW, COLUMN, 0.8, 0.1, **more) | {"fingerprint": fingerprint}
        waits = cell(definition, "gin", COLUMN) | {"fingerprint": "of before"}
        return definition, [one, waits]

    (found,) = read_results(build_results(folder, [table])).tables
    return found


@pytest.fixture
def current():
    return plan_cell("property", ROW, COLUMN, "laptop").fingerprint


def test_a_cell_of_the_definition_of_today_is_not_marked(tmp_path, current):
    table = results_with(tmp_path, current)
    assert not table.outdated
    for text in (markdown_report(table), headline_table(table), str(cell_view_of(table))):
        assert "outdated" not in text


def test_a_cell_of_another_definition_is_marked_wherever_it_is_shown(tmp_path):
    table = results_with(tmp_path, "of before")
    assert table.outdated == {(ROW, COLUMN)}  # what waits has nothing to be outdated
    assert table.complete().outdated == table.outdated
    assert not results_with(tmp_path / "partial", "of before", runs=2).complete().outdated
    report = markdown_report(table)
    assert "1 is outdated: its definition or settings have changed since" in report
    assert "4, outdated" in report
    assert "0.800 ± 0.100<br>outdated" in headline_table(table)
    assert dict(cell_view_of(table)["facts"])["outdated"].startswith(
        "its definition or the settings"
    )
    lines = csv.DictReader(io.StringIO(csv_table(table)))
    assert [(x["row"], x["column"]) for x in lines if x["outdated"] == "True"] == [(ROW, COLUMN)]


def test_figures_leave_outdated_cells_out(tmp_path, current):
    for fingerprint, word in ((current, ""), ("of before", "outdated")):
        published = {"mean": 0.7, "std": 0.1, "row": "GCN", "column": "Eccentricity"}
        table = results_with(tmp_path / fingerprint, fingerprint, published=published)
        (chart,) = (c for c in dot_charts(table) if c.key == f"property--{COLUMN}")
        (dot,) = (dot for dot in chart.dots if dot.label == "GCN")
        assert (dot.measured is None, dot.word) == (bool(word), word)


def test_curves_over_the_depth_leave_outdated_cells_out(sample):
    table = sample.tables[3]
    place = ("gcn", "photo-10")
    fresh, old = (
        depth_charts(replace(table, outdated=frozenset(places)))[0] for places in ((), (place,))
    )
    heights = [dict(chart.series[0].points) for chart in (fresh, old)]
    assert heights[0][10] is not None
    assert heights[1] == {**heights[0], 10: None}


def test_the_command_says_how_many_are_outdated(tmp_path):
    results_with(tmp_path / "results", "of before")
    printed = CliRunner().invoke(app, ["report", str(tmp_path / "results")]).output
    assert "1 is outdated: its definition or settings have changed since." in printed


def test_a_cell_that_failed_before_anything_was_measured_has_nothing_to_be_outdated(tmp_path):
    def table():
        definition, _ = property_table()
        error = {"message": "it diverged", "traceback": None, "run": None}
        failed = cell(definition, ROW, COLUMN, status="failed", error=error)
        found = cell(definition, "gin", COLUMN, status="partial", search={"how": "halving"})
        return definition, [one | {"fingerprint": "of before"} for one in (failed, found)]

    (found,) = read_results(build_results(tmp_path, [table])).tables
    assert found.outdated == {("gin", COLUMN)}  # its settings were found


def test_the_page_and_latex_say_it_too(tmp_path):
    table = results_with(tmp_path, "of before")
    results = Results(tmp_path, None, "laptop", (table,))
    assert "4, outdated" in html_page(results)
    assert any("4, outdated" in latex_grid(grid) for grid in grids(table))


def test_a_cell_whose_settings_were_selected_anew_is_outdated(tmp_path):
    """A cell of the figure over the depth has the settings of a cell of the table."""
    names = {"user": ("depth", "gcn", "photo-5"), "source": ("benchmarks", "gcn", "photo")}
    plans = {which: plan_cell(*place, "laptop") for which, place in names.items()}

    def outdated(selected, used=0.01, **changes):
        found = {"search": SearchRecord(), "settings": {"optimizer.lr": used}}
        user = plans["user"].new_cell().model_copy(update=found)
        chosen = {"optimizer.lr": selected, "model.num_layers": 2}
        source = plans["source"].new_cell().model_copy(update={"settings": chosen, **changes})
        return is_outdated(user, {names["source"]: source})

    assert not outdated(selected=0.01)  # the depth is the figure's own
    assert outdated(selected=0.003)
    assert outdated(selected=0.01, fingerprint="of before")
    assert outdated(selected=0.01, settings={})  # the search has begun anew
    assert not outdated(selected=0.003, fingerprint=None)  # it is not among these results


def test_tables_are_read_together(tmp_path):
    """The source's settings come from another table of the same folder."""
    results = ResultsDirectory(tmp_path)
    results.open("laptop")
    for name in ("benchmarks", "depth"):
        results.write_outline(outline(find_experiment(name), "laptop", {"gcn"}, {}))
    results.add_experiments("laptop", ["benchmarks", "depth"])
    for place, rate in (("benchmarks", 0.003), ("depth", 0.01)):
        plan = plan_cell(place, "gcn", "photo" if place == "benchmarks" else "photo-5", "laptop")
        told = {"search": SearchRecord(), "settings": {"optimizer.lr": rate}}
        results.write_cell(plan, plan.new_cell().model_copy(update=told))
    of_benchmarks, of_depth = read_results(tmp_path).tables
    assert not of_benchmarks.outdated
    assert of_depth.outdated == {("gcn", "photo-5")}


def test_outdated_cells_do_not_count_in_comparisons(tmp_path):
    """The best value of a column, what is said of it, and how many cells agree with the paper."""

    def table():
        definition, _ = property_table()
        published = {"mean": 0.8, "std": 0.01, "row": "GCN", "column": "Eccentricity"}
        told = {"published": published}
        old = measured(definition, "gcn", COLUMN, 0.2, 0.01, **told) | {"fingerprint": "of before"}
        found = [old]
        for row, score in (("gat", 0.7), ("gin", 0.8)):
            now = plan_cell("property", row, COLUMN, "laptop").fingerprint
            found.append(measured(definition, row, COLUMN, score, 0.01, **told))
            found[-1]["fingerprint"] = now
        return definition, found

    (found,) = read_results(build_results(tmp_path, [table])).tables
    said = verdict(found)
    assert "Lowest log10 of the mean squared error: GAT on sssp (0.700)." in said
    assert "1 of 2 cells agree with the paper" in said
    assert "farthest is GAT on sssp, −0.100" in said
    (grid,) = grids(found)
    best = {
        line.label for block in grid.blocks for line in block if any(e.best for e in line.entries)
    }
    assert best == {"GAT"}
    alone = replace(found, outdated=frozenset(found.cells))
    assert verdict(alone).startswith("All that was measured is outdated.")


def cell_view_of(table):
    row = next(row for row in table.experiment.rows if row.key == ROW)
    column = next(column for column in table.experiment.columns if column.key == COLUMN)
    return cell_view(table, row, column)


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprint": None},
        {"experiment": "of-a-plugin"},
        {"row": "no-more"},
        {"column": "no-more"},
        {"budget": "unknown"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_nothing_is_told_of_cells_that_are_not_known_here(change):
    known = {"experiment": "property", "row": ROW, "column": COLUMN, "budget": "laptop"}
    settings = {"format": 1, "status": "done", "fingerprint": "of before", **known}
    assert is_outdated(Cell(**settings))
    assert not is_outdated(Cell(**settings | change))
