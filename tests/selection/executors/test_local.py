import pytest

from adgn._util.environment import available_cores
from adgn.selection import ExecutorError, LocalExecutor
from adgn.selection.worker import WorkerSpec


def test_cores_are_shared_out():
    assert LocalExecutor(1).threads == available_cores()
    assert LocalExecutor(available_cores()).threads == 1
    assert LocalExecutor(1000).threads == 1
    assert LocalExecutor(2, threads=7).threads == 7


def test_workers_that_cannot_start_are_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("adgn.selection.executors.local._MAX_QUICK_DEATHS", 1)
    spec = WorkerSpec("s", f"sqlite:///{tmp_path}/nothing.db", str(tmp_path), 1, 1, 5)
    polls = []
    with pytest.raises(ExecutorError, match=r"die as soon as they start.*nothing\.db"):
        LocalExecutor(1).run(spec, lambda: polls.append(1))
    assert polls
    assert "StorageError" in (tmp_path / "workers" / "0.log").read_text()
