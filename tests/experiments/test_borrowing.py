import pytest

from adgn.experiments.borrowing import borrowed_settings, lender_of, outdated_loan
from adgn.experiments.cells import new_cell, write_cell
from adgn.experiments.plan import plan_cell
from adgn.experiments.results import ResultsDirectory

LENDER = ("benchmarks", "gcn", "photo", "laptop")
BORROWER = ("depth", "gcn", "photo-5", "laptop")


@pytest.fixture
def results(tmp_path):
    return ResultsDirectory(tmp_path)


def lend(results, settings, **changes):
    plan = plan_cell(*LENDER)
    cell = {**new_cell(plan), "search": {"how": "random"}, "settings": settings, **changes}
    write_cell(results.cell_file(plan), cell)


def with_loan(results):
    plan = plan_cell(*BORROWER)
    settings, how = borrowed_settings(plan, results)
    return plan, {**new_cell(plan), "search": {"how": how}, "settings": settings}


def test_only_cells_without_a_search_borrow():
    assert lender_of(plan_cell(*LENDER)) is None
    assert lender_of(plan_cell("depth", "gcn", "photo-5", "paper")) is None
    lender = lender_of(plan_cell("depth-heterophily", "adgn-sum", "texas-8", "laptop"))
    assert (lender.experiment.name, lender.name) == ("heterophily", "adgn-sum--texas")


def test_the_depth_is_the_columns_own(results):
    lend(results, {"optimizer.lr": 0.01, "model.num_layers": 2})
    settings, how = borrowed_settings(plan_cell(*BORROWER), results)
    assert settings == {"optimizer.lr": 0.01}
    assert how == "no search: as selected in benchmarks (gcn, photo)"


def test_a_loan_is_outdated_when_the_lender_selected_something_else(results):
    lend(results, {"optimizer.lr": 0.01})
    plan, cell = with_loan(results)
    assert not outdated_loan(plan, cell, results, lender_searches=False)
    lend(results, {"optimizer.lr": 0.003})
    assert outdated_loan(plan, cell, results, lender_searches=False)


def test_a_loan_is_outdated_when_the_lenders_definition_changed(results):
    lend(results, {"optimizer.lr": 0.01})
    plan, cell = with_loan(results)
    lend(results, {"optimizer.lr": 0.01}, fingerprint="another")
    assert outdated_loan(plan, cell, results, lender_searches=False)


def test_defaults_are_outdated_once_the_lender_searches(results):
    plan, cell = with_loan(results)
    assert "the protocol's defaults" in cell["search"]["how"]
    assert not outdated_loan(plan, cell, results, lender_searches=False)
    assert outdated_loan(plan, cell, results, lender_searches=True)
    lend(results, {"optimizer.lr": 0.01})
    assert outdated_loan(plan, cell, results, lender_searches=False)


def test_nothing_is_outdated_before_it_was_borrowed(results):
    lend(results, {"optimizer.lr": 0.01})
    plan = plan_cell(*BORROWER)
    assert not outdated_loan(plan, new_cell(plan), results, lender_searches=True)
