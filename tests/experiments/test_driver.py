import threading

from adgn.experiments.driver import Driver, Job, ReproductionCallback
from adgn.experiments.plan import plan_cell
from adgn.experiments.records import SearchRecord
from adgn.experiments.results import ResultsDirectory
from tests.experiments.workers import HereWorker, Steps


def test_a_dead_worker_is_replaced(here):
    HereWorker.deaths = 2
    callback = Steps()
    result = here("trees", models=["gcn"], callback=callback)
    assert not result.failed
    assert [outcome for _, _, outcome in callback.ended].count("died") == 2


def test_a_cell_that_kills_workers_is_failed_in_the_end(here):
    HereWorker.deaths = 3
    result = here("trees", models=["gcn"], workers=1)
    (job,) = result.failed
    assert job.plan.column.key == "radius-2"
    assert "3 workers died in this step" in job.cell.error.message
    assert [j.cell.status for j in result.jobs] == ["failed", "done", "done", "done"]
    assert not here("trees", models=["gcn"], retry_failed=True).failed


def test_settings_that_are_taken_over_are_waited_for(tmp_path):
    source = plan_cell("benchmarks", "gcn", "photo", "laptop")
    user = plan_cell("depth", "gcn", "photo-5", "laptop")
    jobs = [Job(user, user.new_cell(), 0), Job(source, source.new_cell(), 1)]
    driver = Driver(ResultsDirectory(tmp_path), jobs, ReproductionCallback(), threading.Event())
    assert driver._next(jobs) is jobs[1]
    jobs[1].running = True
    assert driver._next(jobs) is None
    found = {"search": SearchRecord(), "settings": {"optimizer.lr": 0.01}}
    jobs[1].cell = jobs[1].cell.model_copy(update=found)
    jobs[1].running = False
    assert driver._next(jobs) is jobs[0]  # step 0 goes before a first round
