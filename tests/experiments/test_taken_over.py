import pytest

from adgn.experiments.plan import plan_cell
from adgn.experiments.records import SearchRecord
from adgn.experiments.results import ResultsDirectory
from adgn.experiments.taken_over import settings_outdated, settings_source, taken_over_settings

SOURCE = ("benchmarks", "gcn", "photo", "laptop")
USER = ("depth", "gcn", "photo-5", "laptop")


@pytest.fixture
def results(tmp_path):
    return ResultsDirectory(tmp_path)


def select(results, settings, **changes):
    plan = plan_cell(*SOURCE)
    found = {"search": SearchRecord(how="random"), "settings": settings, **changes}
    results.write_cell(plan, plan.new_cell().model_copy(update=found))


def with_settings(results):
    plan = plan_cell(*USER)
    settings, how = taken_over_settings(plan, results)
    found = {"search": SearchRecord(how=how), "settings": settings}
    return plan, plan.new_cell().model_copy(update=found)


def test_only_cells_without_a_search_take_settings_over():
    assert settings_source(plan_cell(*SOURCE)) is None
    assert settings_source(plan_cell("depth", "gcn", "photo-5", "paper")) is None
    source = settings_source(plan_cell("depth-heterophily", "adgn-sum", "texas-8", "laptop"))
    assert (source.experiment.name, source.name) == ("heterophily", "adgn-sum--texas")


def test_the_depth_is_the_columns_own(results):
    select(results, {"optimizer.lr": 0.01, "model.num_layers": 2})
    settings, how = taken_over_settings(plan_cell(*USER), results)
    assert settings == {"optimizer.lr": 0.01}
    assert how == "no search: as selected in benchmarks (gcn, photo)"


def test_settings_are_outdated_when_the_source_selected_something_else(results):
    select(results, {"optimizer.lr": 0.01})
    plan, cell = with_settings(results)
    assert not settings_outdated(plan, cell, results, source_searches=False)
    select(results, {"optimizer.lr": 0.003})
    assert settings_outdated(plan, cell, results, source_searches=False)


def test_settings_are_outdated_when_the_definition_of_the_source_changed(results):
    select(results, {"optimizer.lr": 0.01})
    plan, cell = with_settings(results)
    select(results, {"optimizer.lr": 0.01}, fingerprint="another")
    assert settings_outdated(plan, cell, results, source_searches=False)


def test_defaults_are_outdated_once_the_source_searches(results):
    plan, cell = with_settings(results)
    assert "the protocol's defaults" in cell.search.how
    assert not settings_outdated(plan, cell, results, source_searches=False)
    assert settings_outdated(plan, cell, results, source_searches=True)
    select(results, {"optimizer.lr": 0.01})
    assert settings_outdated(plan, cell, results, source_searches=False)


def test_nothing_is_outdated_before_it_was_taken_over(results):
    select(results, {"optimizer.lr": 0.01})
    plan = plan_cell(*USER)
    assert not settings_outdated(plan, plan.new_cell(), results, source_searches=True)
