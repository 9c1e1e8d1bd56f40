import json
import threading
from dataclasses import replace

import pytest

from adgn.experiments import steps
from adgn.experiments.budgets import BUDGETS, Search
from adgn.experiments.driver import ReproductionCallback
from adgn.experiments.errors import ReproductionError
from adgn.experiments.plan import plan_cell
from adgn.experiments.records import SearchRecord
from adgn.experiments.results import ResultsDirectory
from adgn.experiments.steps import StepOrder, do_step
from adgn.selection import objective
from adgn.selection.errors import ExecutorError, StorageError
from adgn.training import Interrupted, RunDirectory
from tests.experiments.workers import Steps
from tests.selection.studies import InProcess


def done(out, *names, step, stop=None):
    """The outcome of a step, and the cell as it is now."""
    outcome = do_step(StepOrder(str(out), *names, step), stop or threading.Event())
    return outcome, ResultsDirectory(out).cell(plan_cell(*names))


def select_photo(out, **changes):
    plan = plan_cell("benchmarks", "gcn", "photo", "laptop")
    selected = {"optimizer.lr": 0.01, "model.num_layers": 2}
    found = {"search": SearchRecord(), "settings": selected, **changes}
    ResultsDirectory(out).write_cell(plan, plan.new_cell().model_copy(update=found))


def test_settings_are_taken_over_from_the_same_row_and_data_set(tmp_path):
    select_photo(tmp_path)
    _, cell = done(tmp_path, "depth", "gcn", "photo-5", "laptop", step=0)
    assert cell.settings == {"optimizer.lr": 0.01}  # the depth is the column's
    assert "as selected in benchmarks (gcn, photo)" in cell.search.how
    _, cell = done(tmp_path, "depth", "gat", "photo-5", "laptop", step=0)
    assert cell.settings == {}
    assert "the protocol's defaults" in cell.search.how


def test_settings_of_another_definition_are_not_taken_over(tmp_path):
    select_photo(tmp_path, fingerprint="other")
    _, cell = done(tmp_path, "depth", "gcn", "photo-5", "laptop", step=0)
    assert cell.settings == {}


def test_a_stop_between_two_runs(tmp_path):
    stop = threading.Event()
    stop.set()
    names = ("trees", "gcn", "radius-2", "smoke")
    assert done(tmp_path, *names, step=1, stop=stop) == ("interrupted", None)


def test_normalised_accuracy_is_in_the_cell(tmp_path):
    outcome, cell = done(tmp_path, "trees", "gcn", "radius-2", "smoke", step=1)
    assert outcome == "done"
    assert cell.score == cell.train["accuracy"]
    expected = 100 * cell.score.mean / (4 * 2)  # 4 units, as many layers as the radius
    assert cell.train["normalised_accuracy"].mean == pytest.approx(expected)
    assert cell.notes == (f"normalised accuracy {expected:.2f}",)
    assert cell.curve.metric == "accuracy"


@pytest.mark.long
def test_a_search_by_halving_goes_on_after_a_stop(tmp_path, monkeypatch):
    budget = BUDGETS["smoke"]["property"]
    search = Search(space="paper", prune="halving", least={"gcn": {"model.num_layers": 10}})
    changed = type(budget)(**{**vars(budget), "search": search})
    monkeypatch.setitem(BUDGETS["smoke"], "property", changed)
    monkeypatch.setenv("ADGN_DATA", str(tmp_path / "data"))
    names = ("property", "gcn", "sssp", "smoke")
    _, calm = done(tmp_path / "calm", *names, step=0)
    assert calm.search.trials == 6
    assert calm.search.how.endswith("halving: 6 to 1 epoch, 3 to 2 epochs")
    assert calm.search.rungs == ("1 epoch", "2 epochs")
    assert (calm.search.metric, calm.search.compared_on) == ("log10_mse_paper", "val")
    assert [len(tried.scores) for tried in calm.search.configurations] == [2] * 3 + [1] * 3
    assert calm.search.configurations[0].settings.items() <= calm.settings.items()
    stop, trained, train_to = threading.Event(), [], objective.train_to

    def stopped_in_the_second_rung(epochs, *arguments):
        trained.append(epochs)
        if trained.count(2) == 2:
            stop.set()
        return train_to(epochs, *arguments)

    monkeypatch.setattr(objective, "train_to", stopped_in_the_second_rung)
    outcome, _ = done(tmp_path / "stopped", *names, step=0, stop=stop)
    assert outcome == "interrupted"
    outcome, cell = done(tmp_path / "stopped", *names, step=0)
    assert outcome == "done"
    assert trained == [1] * 6 + [2] * 4  # one of them was begun twice
    assert cell.settings == calm.settings
    assert cell.search.how == calm.search.how
    assert cell.search.configurations == calm.search.configurations


@pytest.mark.parametrize(("epochs", "trained"), [(None, ["95"]), (1, ["41", "95"])])
def test_a_run_of_the_search_that_is_a_final_run_is_not_trained_again(
    tmp_path, monkeypatch, epochs, trained
):
    budget = BUDGETS["smoke"]["property"]
    changed = replace(budget, search=replace(budget.search, max_epochs=epochs))
    monkeypatch.setitem(BUDGETS["smoke"], "property", changed)
    monkeypatch.setenv("ADGN_DATA", str(tmp_path / "data"))
    names = ("property", "gcn", "sssp", "smoke")
    done(tmp_path / "out", *names, step=0)
    begun, begin = [], RunDirectory.begin

    def noted(directory, config):
        if not directory.result_file.exists():
            begun.append(str(config.seed))
        begin(directory, config)

    monkeypatch.setattr(RunDirectory, "begin", noted)
    for step in (1, 2):
        outcome, cell = done(tmp_path / "out", *names, step=step)
        assert outcome == "done"
    assert begun == trained
    assert [run.seed for run in cell.runs] == [41, 95]
    assert all(set(run.scores) == {"train", "val", "test"} for run in cell.runs)


# Cells of the full budget, which are whole studies.


@pytest.fixture
def small(monkeypatch):
    """The full budget on tiny graphs, one column and two configurations."""
    tiny = dict(BUDGETS["smoke"]["property"].settings)
    budget = BUDGETS["paper"]["property"]
    changed = type(budget)(**{**vars(budget), "settings": tiny, "columns": ("sssp",)})
    monkeypatch.setitem(BUDGETS["paper"], "property", changed)
    space = {"optimizer.lr": [0.01, 0.003]}
    monkeypatch.setattr("adgn.experiments.plan.named_space", lambda *names: dict(space))
    monkeypatch.setattr("adgn.selection.api.LocalExecutor", lambda workers, threads: InProcess())


def test_a_cell_is_what_the_study_found(here, small, tmp_path):
    result = here("property", budget="paper", models=["gcn"])
    (job,) = result.jobs
    cell = job.cell
    work = tmp_path / "out" / "property" / "work" / "gcn--sssp"
    record = json.loads((work / "search" / "selection.json").read_text())
    written = cell.model_dump(mode="json")
    assert cell.status == "done"
    assert written["score"] == record["test"]["log10_mse_paper"]
    assert written["validation"] == record["validation"]
    assert cell.settings == record["settings"]
    assert [run.seed for run in cell.runs] == [41, 95, 12, 35]
    assert cell.search.trials == 2
    assert [run.epochs for run in cell.runs] == [2] * 4
    assert all(run.seconds > 0 and run.best_epoch for run in cell.runs)
    assert cell.seconds_per_epoch.mean > 0
    assert cell.curve.epochs == (1, 2)
    assert cell.parameters == 90 + 20 * 930 + 481
    assert f"lr = {record['settings']['optimizer.lr']}" in cell.config
    callback = Steps()
    again = here("property", budget="paper", models=["gcn"], callback=callback)
    assert again.moved == ()
    assert callback.begun == []
    assert again.jobs[0].cell == cell


@pytest.fixture
def fails(monkeypatch):
    def break_with(error):
        def broken(*arguments, **options):
            raise error

        monkeypatch.setattr(steps, "select", broken)

    return break_with


def test_a_failure_is_written_into_the_cell(here, small, fails):
    fails(ZeroDivisionError("on purpose"))
    result = here("property", budget="paper", models=["gcn"])
    (job,) = result.failed
    assert job.cell.error.message == "ZeroDivisionError: on purpose"
    assert job.cell.error.run == "search"


@pytest.mark.parametrize("kind", [ExecutorError, StorageError])
def test_what_concerns_all_cells_stops_the_whole(here, small, fails, tmp_path, kind):
    fails(kind("nobody answers"))
    storage = f"sqlite:///{tmp_path / 'all.db'}"
    with pytest.raises(kind, match="nobody answers"):
        here("property", budget="paper", models=["gcn"], storage=storage)


def test_a_damaged_study_of_one_cell_is_that_cells_failure(here, small, fails):
    fails(StorageError("this file is damaged"))
    (job,) = here("property", budget="paper", models=["gcn"]).failed
    assert "this file is damaged" in job.cell.error.message


def test_an_interrupt_of_a_run_in_this_process_stops_the_whole(here, small, fails):
    fails(Interrupted("stopped", 1))
    with pytest.raises(KeyboardInterrupt):
        here("property", budget="paper", models=["gcn"])


def test_callbacks_see_that_a_study_is_under_way(here, small):
    class Looks(ReproductionCallback):
        seen = ()

        def tick(self, jobs):
            self.seen = (*self.seen, [job.running for job in jobs])

    callback = Looks()
    here("property", budget="paper", models=["gcn"], callback=callback)
    assert [True] in callback.seen
    assert callback.seen[-1] == [False]


def test_rounds_have_no_meaning_for_whole_studies(here, small):
    with pytest.raises(ReproductionError, match="rounds=1 has no effect with budget='paper'"):
        here("property", budget="paper", models=["gcn"], rounds=1)
