import json

import pytest

from adgn.experiments.budgets import BUDGETS
from adgn.experiments.driver import Watch
from adgn.experiments.errors import ReproductionError
from adgn.selection.errors import ExecutorError, StorageError
from tests.experiments.workers import Steps
from tests.selection.studies import InProcess


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
    assert cell["status"] == "done"
    assert cell["score"] == record["test"]["log10_mse_paper"]
    assert cell["validation"] == record["validation"]
    assert cell["settings"] == record["settings"]
    assert [run["seed"] for run in cell["runs"]] == [41, 95, 12, 35]
    assert cell["search"]["trials"] == 2
    assert [run["epochs"] for run in cell["runs"]] == [2] * 4
    assert all(run["seconds"] > 0 and run["best_epoch"] for run in cell["runs"])
    assert cell["seconds_per_epoch"]["mean"] > 0
    assert cell["curve"]["epochs"] == [1, 2]
    assert cell["parameters"] == 90 + 20 * 930 + 481
    assert f"lr = {record['settings']['optimizer.lr']}" in cell["config"]
    watch = Steps()
    again = here("property", budget="paper", models=["gcn"], watch=watch)
    assert again.moved == ()
    assert watch.begun == []
    assert again.jobs[0].cell == cell


def test_a_failure_is_written_into_the_cell(here, small, monkeypatch):
    def fails(*arguments, **options):
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr("adgn.experiments.whole_selection.select", fails)
    result = here("property", budget="paper", models=["gcn"])
    (job,) = result.failed
    assert job.cell["error"]["message"] == "ZeroDivisionError: on purpose"


@pytest.mark.parametrize("kind", [ExecutorError, StorageError])
def test_what_concerns_all_cells_stops_the_whole(here, small, monkeypatch, tmp_path, kind):
    def fails(*arguments, **options):
        raise kind("nobody answers")

    storage = f"sqlite:///{tmp_path / 'all.db'}"
    monkeypatch.setattr("adgn.experiments.whole_selection.select", fails)
    with pytest.raises(kind, match="nobody answers"):
        here("property", budget="paper", models=["gcn"], storage=storage)


def test_a_damaged_study_of_one_cell_is_that_cells_failure(here, small, monkeypatch):
    def fails(*arguments, **options):
        raise StorageError("this file is damaged")

    monkeypatch.setattr("adgn.experiments.whole_selection.select", fails)
    (job,) = here("property", budget="paper", models=["gcn"]).failed
    assert "this file is damaged" in job.cell["error"]["message"]


def test_those_who_watch_see_that_a_study_is_under_way(here, small):
    class Looks(Watch):
        seen = ()

        def tick(self, jobs):
            self.seen = (*self.seen, [job.running for job in jobs])

    watch = Looks()
    here("property", budget="paper", models=["gcn"], watch=watch)
    assert [True] in watch.seen
    assert watch.seen[-1] == [False]


def test_rounds_have_no_meaning_for_whole_studies(here, small):
    with pytest.raises(ReproductionError, match="rounds=1 has no effect with budget='paper'"):
        here("property", budget="paper", models=["gcn"], rounds=1)
