import pytest
import torch

from adgn.bench import worker
from adgn.bench.timing import peak_megabytes
from adgn.bench.worker import Job, WorkerError, measure, run_alone
from adgn.bench.workloads import Workload
from adgn.graph import backend

TINY = Workload("random", 2, 4, "gcn", 1000)


def test_times_of_several_ways():
    found = measure(Job("time", TINY, ("adgn", "pyg"), repeats=2))
    assert found["sizes"] == {"nodes": 40, "edges": 1000, "features": 32}
    assert found["backend"] == backend().name
    for seen in found["ways"].values():
        assert len(seen["times"]) == 2
        assert all(taken > 0 for taken in seen["times"])
        assert len(seen["losses"]) == 2


def test_memory_is_that_of_another_process():
    block = torch.ones(50_000_000)  # 200 MB that the other process must not see
    here = peak_megabytes()
    found = run_alone(Job("memory", TINY, ("adgn",), threads=1))
    assert found["imports_mb"] < found["peak_mb"] < here
    assert block.sum() > 0


def test_memory_counts_the_data():
    features = 40_000 * 32 * 4 / 1e6
    found = run_alone(Job("memory", Workload("random", 2, 4, "gcn", 1_000_000), ("adgn",)))
    assert found["peak_mb"] - found["imports_mb"] > features


def test_an_error_there_is_an_error_here():
    with pytest.raises(WorkerError, match="ValueError: edges=7 is not valid"):
        run_alone(Job("time", Workload("random", 2, 4, "gcn", 7), ("adgn",)))


def test_a_process_that_dies_is_told(monkeypatch):
    monkeypatch.setattr(worker, "FUNCTION", "tests._util.worker_functions:die")
    for _ in range(2):  # each time in a new process
        with pytest.raises(WorkerError, match=r"exit code -9 \(killed"):
            run_alone(Job("time", TINY, ("adgn",)))
