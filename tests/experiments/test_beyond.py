import pytest

from adgn.experiments.api import plan_cells
from adgn.experiments.beyond import BEYOND, EPOCHS, LONG, SHELLS
from adgn.experiments.outline import outline
from adgn.experiments.plan import plan_cell
from adgn.report.details import cell_view
from adgn.report.grid import grids
from adgn.report.results import read_results
from adgn.tasks.published import published_tables

LATER = published_tables()["graph_property_prediction_later"]


def test_all_rows_have_one_protocol_and_it_is_the_one_of_the_note():
    plans = plan_cells(["beyond"], "laptop")
    longer = [plan for plan in plans if plan.row.key == "sonar-long"]
    for plan in longer:
        plans.remove(plan)
        same = plan_cell("beyond", "sonar", plan.column.key, "laptop").base.model_dump()
        same["loop"]["max_epochs"] = LONG
        assert plan.base.model_dump() == same
    assert len(longer) == 4
    shared = ("optimizer", "schedule", "stopping", "loop")
    assert all(
        getattr(plan.base, part) == getattr(plans[0].base, part)
        for plan in plans
        for part in shared
    )
    base = plans[0].base
    assert (base.loop.batch_size, base.loop.clip_norm, base.loop.max_epochs) == (16, 1.0, EPOCHS)
    assert (base.schedule.name, base.schedule.min_lr, base.optimizer.lr) == ("cosine", 0.0, 0.003)
    assert base.stopping.patience is None
    assert {plan.base.model.hidden_channels for plan in plans} == {30}
    assert all(plan.space is None for plan in plans)
    note = BEYOND.notes[0]
    assert f"{EPOCHS} epochs without early stopping" in note
    assert "batches of 16 graphs" in note


def test_initialisations_of_the_budgets():
    assert plan_cell("beyond", "sonar", "sssp", "laptop").protocol.seeds == (41, 95)
    assert plan_cell("beyond", "sonar", "sssp", "paper").protocol.seeds == (41, 95, 12, 35)


def test_settings_of_every_row_are_told_and_are_those_that_it_has():
    told = BEYOND.notes[1]
    for row in BEYOND.rows:
        model = plan_cell("beyond", row.key, "sssp", "laptop").base.model.model_dump()
        for name, value in row.settings["model"].items():
            assert model[name] == value
            assert f"{name} = {value}" in told


def test_published_values_stand_with_their_true_target():
    def published(row, column):
        return plan_cell("beyond", row, column, "laptop").published()

    sssp = published("sonar", "sssp")
    assert (sssp.mean, sssp.std, sssp.column) == (-3.1187, 0.0192, "Eccentricity")
    assert sssp.source == LATER["sources"]["SONAR"]
    assert published("sonar", "laplacian").mean == -6.7517
    assert published("adgn-ldw", "sssp").mean == 0.3046
    assert published("mpssm", "diameter") is None  # no number that could be checked
    for row in BEYOND.rows:
        assert published(row.key, "eccentricity") is None


@pytest.mark.parametrize("row", ["adgn-rk4", "adgn-blocks", "adgn-deep", "gcn-residual"])
def test_variants_of_our_own_have_no_published_value(row):
    assert plan_cell("beyond", row, "diameter", "laptop").published() is None


def test_every_later_method_is_run_or_quoted_with_its_source_and_shells_come_last():
    run = {quote.row for row in BEYOND.rows for quote in (row.quotes or {}).values()}
    assert run | set(BEYOND.quoted) == set(LATER["rows"]) == set(LATER["sources"])
    assert not run & set(BEYOND.quoted)
    shells = set(LATER["shells"])
    assert set(list(BEYOND.quoted)[-len(shells) :]) == shells
    assert all(value.source for values in BEYOND.quoted.values() for value in values.values())


def test_a_report_names_groups_and_sources(here, tmp_path):
    here("beyond", models=["sonar"], columns=["sssp"])
    (table,) = read_results(tmp_path / "out").tables
    (grid,) = grids(table)
    labels = [line.label for block in grid.blocks for line in block]
    assert f"gLSTM (published; {SHELLS})" in labels
    assert "GraphCON (published)" in labels
    cell = table.cells["sonar", "sssp"]
    assert cell.status == "done"
    assert len(cell.runs) == 1
    row, column = BEYOND.row("sonar"), BEYOND.column("sssp")
    published = dict(cell_view(table, row, column)["facts"])["published"]
    assert published.endswith("(“SONAR”, “Eccentricity” in Trenta et al., NeurIPS 2025)")


def test_the_outline_has_the_groups_of_quoted_rows():
    quoted = {one.title: one.group for one in outline(BEYOND, "smoke", {"sonar"}, {}).quoted}
    assert quoted["DRew-GCN"] == SHELLS
    assert quoted["GPS"] == ""
    assert quoted["SWAN"] == ""  # a row that is not run
