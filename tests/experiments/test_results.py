import os

import pytest

from adgn.experiments.errors import ReproductionError
from adgn.experiments.plan import plan_cell
from adgn.experiments.records import SearchRecord
from adgn.experiments.results import ResultsDirectory


@pytest.fixture
def plan():
    return plan_cell("property", "gcn", "sssp", "smoke")


@pytest.mark.parametrize("mark", ["a/../../../x", "../../../x", "\n", ".."])
def test_results_are_never_moved_out_of_the_directory(tmp_path, plan, mark):
    results = ResultsDirectory(tmp_path / "deep" / "out")
    cell, _ = results.begin(plan)
    changed = cell.model_copy(update={"fingerprint": mark})
    results.cell_file(plan).write_text(changed.model_dump_json())
    _, by_cell = results.begin(plan)
    results.claim_work(plan)
    (results.work_folder(plan) / "fingerprint").write_text(mark)
    _, by_work = results.begin(plan)
    aside = results.path / "property" / "outdated"
    assert by_cell == aside / "gcn--sssp-unknown"
    assert by_work == aside / "gcn--sssp-unknown-2"
    assert sorted(aside.iterdir()) == [by_cell, by_work]


@pytest.mark.parametrize("file", ["reproduction.json", "property/cells/gcn--sssp.json"])
def test_a_deeply_nested_file_is_told(tmp_path, plan, file):
    results = ResultsDirectory(tmp_path)
    results.open("smoke")
    results.begin(plan)
    (tmp_path / file).write_text("[" * 100_000)
    with pytest.raises(ReproductionError, match=r"is damaged .*nested more than 100"):
        results.open("smoke")
        results.begin(plan)


def test_a_pipe_in_the_place_of_a_file_is_told(tmp_path, plan):
    results = ResultsDirectory(tmp_path)
    results.begin(plan)
    results.cell_file(plan).unlink()
    os.mkfifo(results.cell_file(plan))
    with pytest.raises(ReproductionError, match=r"it is not a file; put the file back"):
        results.begin(plan)


# Settings that one experiment takes over from another: the figures over the depth.

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
    settings, how = results.taken_over_settings(plan)
    found = {"search": SearchRecord(how=how), "settings": settings}
    return plan, plan.new_cell().model_copy(update=found)


def test_only_cells_without_a_search_take_settings_over():
    assert plan_cell(*SOURCE).settings_source is None
    assert plan_cell("depth", "gcn", "photo-5", "paper").settings_source is None
    source = plan_cell("depth-heterophily", "adgn-sum", "texas-8", "laptop").settings_source
    assert (source.experiment.name, source.name) == ("heterophily", "adgn-sum--texas")


def test_the_depth_is_the_columns_own(results):
    select(results, {"optimizer.lr": 0.01, "model.num_layers": 2})
    settings, how = results.taken_over_settings(plan_cell(*USER))
    assert settings == {"optimizer.lr": 0.01}
    assert how == "no search: as selected in benchmarks (gcn, photo)"


def test_settings_are_outdated_when_the_source_selected_something_else(results):
    select(results, {"optimizer.lr": 0.01})
    plan, cell = with_settings(results)
    assert not results.settings_outdated(plan, cell, source_searches=False)
    select(results, {"optimizer.lr": 0.003})
    assert results.settings_outdated(plan, cell, source_searches=False)


def test_settings_are_outdated_when_the_definition_of_the_source_changed(results):
    select(results, {"optimizer.lr": 0.01})
    plan, cell = with_settings(results)
    select(results, {"optimizer.lr": 0.01}, fingerprint="another")
    assert results.settings_outdated(plan, cell, source_searches=False)


def test_defaults_are_outdated_once_the_source_searches(results):
    plan, cell = with_settings(results)
    assert "the protocol's defaults" in cell.search.how
    assert not results.settings_outdated(plan, cell, source_searches=False)
    assert results.settings_outdated(plan, cell, source_searches=True)
    select(results, {"optimizer.lr": 0.01})
    assert results.settings_outdated(plan, cell, source_searches=False)


def test_nothing_is_outdated_before_it_was_taken_over(results):
    select(results, {"optimizer.lr": 0.01})
    plan = plan_cell(*USER)
    assert not results.settings_outdated(plan, plan.new_cell(), source_searches=True)
