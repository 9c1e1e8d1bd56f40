"""What a table says of itself: made of its numbers, so that other numbers give other words."""

import pytest

from adgn.experiments.records import (
    FORMAT,
    Budget,
    Cell,
    Column,
    Metric,
    Moments,
    Outline,
    Published,
    Quoted,
    Row,
    RunRecord,
    SearchRecord,
)
from adgn.report.results import TableResults
from adgn.report.verdict import agrees, reduced_budget, verdict


def table(scores, *, quoted=(), kind="scores", runs=2, budget="laptop", layers=(None, None)):
    """A table of A-DGN and GCN on two columns; a score is measured, or measured and published."""
    columns = tuple(
        Column(key=key, title=key, layers=layer, group="set" if layer else None)
        for key, layer in zip("ab", layers, strict=True)
    )
    rows = (Row(key="ours", title="A-DGN", model="adgn"), Row(key="gcn", title="GCN", model="gcn"))
    cells = {}
    for row, values in zip(rows, scores, strict=True):
        for column, value in zip(columns, values, strict=True):
            measured, published = value if isinstance(value, tuple) else (value, None)
            cells[row.key, column.key] = Cell(
                format=FORMAT,
                experiment="x",
                row=row.key,
                column=column.key,
                budget=budget,
                status="waiting" if measured is None else "done",
                planned_runs=4,
                runs=() if measured is None else (RunRecord(),) * runs,
                score=None if measured is None else Moments(mean=measured, std=0.01),
                published=None if published is None else Published(mean=published, std=0.0),
                search=SearchRecord(trials=3),
            )
    outline = Outline(
        format=FORMAT,
        name="x",
        title="X",
        kind=kind,
        budget=Budget(name=budget),
        metric=Metric(name="acc", title="accuracy", higher_is_better=True, unit="%"),
        rows=rows,
        columns=columns,
        quoted=tuple(Quoted(title="H2", values={"a": Moments(mean=v)}) for v in quoted),
    )
    return TableResults(outline, cells)


def test_winners_rivals_and_the_paper():
    text = verdict(table([[(0.8, 0.81), 0.5], [(0.7, 0.9), 0.6]]))
    assert text == (
        "Highest accuracy: A-DGN on a (80.00 %); GCN on b (60.00 %). A-DGN is ahead of the best "
        "other method measured in 1 of 2 columns; the difference between them is −10.00 (b, GCN) "
        "to +10.00 (a, GCN). 1 of 2 cells agree with the paper within 2 standard deviations; "
        "farthest is GCN on a, −20.00; 2 of these cells have fewer runs than planned."
    )


def test_other_numbers_turn_the_words():
    text = verdict(table([[0.5, 0.5], [0.7, 0.6]]))
    assert text.startswith("Highest accuracy: GCN on a (70.00 %) and b (60.00 %). ")
    assert "ahead of the best other method measured in 0 of 2 columns" in text
    assert "paper" not in text


@pytest.mark.parametrize(("value", "said"), [(0.9, True), (0.6, False)])
def test_published_rows_of_others_are_named_where_they_are_better(value, said):
    text = verdict(table([[0.8, 0.5], [0.7, 0.6]], quoted=[value]))
    assert ("better in 1 of 2 columns, most on a (H2, 90.00 %)" in text) == said


@pytest.mark.parametrize(("value", "said"), [(0.9, True), (0.6, False)])
def test_published_values_of_cells_that_wait_are_named_where_they_are_better(value, said):
    text = verdict(table([[0.8, 0.5], [(None, value), 0.6]]))
    assert ("better in 1 of 2 columns, most on a (GCN, 90.00 %)" in text) == said


def test_one_method_alone_or_nothing_at_all():
    assert verdict(table([[0.8, 0.5], [None, None]])) == "Measured here: A-DGN alone."
    assert verdict(table([[None, None], [None, None]])) == "Nothing is measured yet."


def test_depth_says_what_becomes_of_each_method():
    text = verdict(table([[0.8, 0.9], [0.8, 0.2]], kind="depth", layers=(1, 30)))
    assert "A-DGN 80.00 % with 1 and 90.00 % with 30 layers" in text
    assert "GCN 80.00 % with 1 and 20.00 % with 30 layers" in text


def test_a_reduced_budget_is_named_only_where_a_cell_is_behind():
    behind, ahead, near = (0.5, 0.9), (0.9, 0.5), (0.8, 0.81)
    found = table([[behind, ahead], [near, 0.3]])
    cells = found.cells
    assert reduced_budget(found, cells["ours", "a"]) == "3 settings tried, 2 of 4 runs"
    assert [reduced_budget(found, cells[k]) for k in (("ours", "b"), ("gcn", "a"))] == ["", ""]
    assert reduced_budget(found, cells["gcn", "b"]) == ""
    assert agrees(found, cells["gcn", "a"])
    assert not agrees(found, cells["ours", "a"])
    full = table([[behind, ahead], [near, 0.3]], budget="paper")
    assert reduced_budget(full, full.cells["ours", "a"]) == ""
