import pytest

from adgn.data import TARGETS
from adgn.experiments.api import plan_cells
from adgn.experiments.budgets import BUDGETS
from adgn.experiments.plan import plan_cell, planned_columns
from adgn.experiments.records import RunRecord, SearchRecord
from adgn.experiments.tables import EXPERIMENTS


@pytest.mark.parametrize("budget", list(BUDGETS))
def test_every_cell_has_a_valid_plan_of_its_own(budget):
    plans = plan_cells(budget=budget)
    assert len({plan.fingerprint for plan in plans}) == len(plans)
    assert all(
        plan.planned_runs == sum(map(len, plan.rounds)) or plan.experiment.kind == "seconds"
        for plan in plans
    )


def test_what_enters_the_fingerprint(monkeypatch):
    def fingerprint():
        return plan_cell("property", "gcn", "sssp", "laptop").fingerprint

    usual = fingerprint()
    budget = BUDGETS["laptop"]["property"]

    def changed(**fields):
        return type(budget)(**{**vars(budget), **fields})

    other_cell = {"gcn--diameter": {"loop": {"max_epochs": 7}}}
    for harmless in ({"text": "other words"}, {"seconds_per_cell": 5.0}, {"by_cell": other_cell}):
        monkeypatch.setitem(BUDGETS["laptop"], "property", changed(**harmless))
        assert fingerprint() == usual
    shorter = {"loop": {"max_epochs": 7}}
    for harmful in (
        {"seeds": 2},
        {"search": None},
        {"settings": shorter},
        {"by_column": {"sssp": shorter}},
        {"by_cell": {"gcn--sssp": shorter}},
    ):
        monkeypatch.setitem(BUDGETS["laptop"], "property", changed(**harmful))
        assert fingerprint() != usual


def test_the_papers_protocols():
    counts = {name: plan_cells([name], "laptop")[0].planned_runs for name in EXPERIMENTS}
    assert counts == {
        "property": 4,
        "property-time": 1,
        "benchmarks": 25,
        "heterophily": 10,
        "trees": 1,
        "depth": 5,
        "depth-heterophily": 10,
        "beyond": 2,
    }
    for name in ("property", "benchmarks", "heterophily", "depth"):
        laptop, paper = plan_cells([name], "laptop")[0], plan_cells([name], "paper")[0]
        assert laptop.base.loop == paper.base.loop  # the final runs have the full protocol
        assert laptop.base.stopping == paper.base.stopping


def test_what_a_row_or_column_fixes_is_not_searched():
    plan = plan_cell("depth", "adgn-gcn", "photo-5", "paper")
    assert "model.num_layers" not in plan.space
    assert plan.base.model.num_layers == 5
    assert plan.base.model.options["phi"] == "gcn"
    # What the row searches in place of what it fixes itself, the column may fix all the same.
    searched = plan_cell("benchmarks", "adgn-gcn-regularised", "photo", "paper").space
    over_depth = plan_cell("depth", "adgn-gcn-regularised", "photo-5", "paper").space
    assert over_depth == {k: v for k, v in searched.items() if k != "model.num_layers"}
    # Where nothing was selected, such a row has the first values of its space.
    model = plan_cell("depth", "adgn-gcn-regularised", "photo-5", "laptop").base.model
    assert (model.num_layers, model.options["dropout"], model.hidden_channels) == (5, 0.5, 128)
    # Where a row fixes everything, the study has the one configuration.
    single = plan_cell("trees", "gcn", "radius-2", "paper")
    assert all(len(values) == 1 for values in single.space.values())


def test_published_values_stand_with_the_target_they_were_measured_on():
    for column in ("diameter", "laplacian", "sssp"):
        cell = plan_cell("property", "gcn", column, "laptop").published()
        assert cell.column == TARGETS[column].published_as
    assert plan_cell("property", "gcn", "eccentricity", "laptop").published() is None
    assert plan_cell("property", "adgn-random", "sssp", "laptop").published().mean == 0.8061
    assert (
        plan_cell("property", "adgn-random-gcn", "laplacian", "laptop").published().mean == -0.951
    )
    for solved in ("adgn-ridge", "adgn-ridge-gcn"):  # the published randomised rows are trained
        assert plan_cell("property", solved, "sssp", "laptop").published() is None
    assert plan_cell("property-time", "grand", "laplacian", "laptop").published().mean == 109.15
    assert plan_cell("trees", "gin", "radius-7", "laptop").published() is None
    assert plan_cell("heterophily", "adgn-gcn", "texas", "laptop").published().std == 0.0602
    assert plan_cell("benchmarks", "dagnn", "photo", "laptop").published() is None


def test_a_search_whose_epochs_were_never_timed_takes_an_unknown_time():
    timed = plan_cell("property", "gcn", "sssp", "laptop")
    usual = timed.budget.seconds_per_cell + timed.search_epochs * timed.budget.seconds_per_epoch
    assert timed.seconds_left(None) == pytest.approx(usual)
    plan = plan_cell("benchmarks", "gcn", "photo", "laptop")
    assert plan.search_epochs > 0
    assert plan.seconds_left(None) is None
    searched = plan.new_cell().model_copy(update={"search": SearchRecord()})
    assert plan.seconds_left(searched) == plan.budget.seconds_per_cell
    # A readout that is solved takes one epoch a run.
    solved = plan_cell("property", "adgn-ridge", "sssp", "laptop")
    epochs = solved.search_epochs + solved.planned_runs
    assert epochs == 16 + 4
    assert solved.seconds_left(None) == pytest.approx(epochs * solved.budget.seconds_per_epoch)
    # Where a search is no part of it, nothing is unknown about it.
    trees = plan_cell("trees", "gcn", "radius-2", "laptop")
    assert trees.seconds_left(None) == trees.budget.seconds_per_cell


def test_runs_that_are_over_are_not_left_whether_their_time_is_known_or_not():
    plan = plan_cell("property", "gcn", "sssp", "laptop")
    runs = (RunRecord(seed=41, seconds=100.0), RunRecord(seed=95))
    cell = plan.new_cell().model_copy(update={"search": SearchRecord(), "runs": runs})
    assert plan.seconds_left(cell) == 100.0 * (4 - 2)


def test_columns_of_a_budget():
    depth = EXPERIMENTS["depth"]
    few = planned_columns(depth, BUDGETS["smoke"]["depth"])
    assert {column.layers for column in few} == {1, 2}
    assert planned_columns(depth, BUDGETS["laptop"]["depth"]) == depth.columns
