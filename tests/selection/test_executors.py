import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from adgn._util.environment import available_cores
from adgn.selection import ExecutorError, LocalExecutor, RayExecutor, select
from adgn.selection.executors import check_workers, threads_per_worker
from adgn.selection.study import kind
from adgn.selection.worker import WorkerSpec
from tests.selection.studies import TOTAL, finished, held, wait_until
from tests.selection.test_api import done, driver_of, end, trials_of, workers_seen
from tests.servers import served


@pytest.mark.parametrize(
    ("workers", "cores", "threads"), [(1, 8, 8), (3, 8, 2), (8, 8, 1), (9, 8, 1)]
)
def test_workers_together_use_no_more_than_the_cores(workers, cores, threads):
    assert threads_per_worker(workers, cores) == threads


def test_at_least_one_worker():
    with pytest.raises(ExecutorError, match="workers=0"):
        check_workers(0)


def test_cores_are_shared_out():
    assert LocalExecutor(1).threads == available_cores()
    assert LocalExecutor(available_cores()).threads == 1
    assert LocalExecutor(1000).threads == 1
    assert LocalExecutor(2, threads=7).threads == 7


def test_workers_that_cannot_start_are_given_up(tmp_path, monkeypatch, warm_workers):
    monkeypatch.setattr("adgn.selection.executors._MAX_QUICK_DEATHS", 1)
    spec = WorkerSpec("s", f"sqlite:///{tmp_path}/nothing.db", str(tmp_path), 1, 1, 5)
    polls = []
    with pytest.raises(ExecutorError, match=r"die as soon as they start.*nothing\.db"):
        LocalExecutor(1).run(spec, lambda: polls.append(1))
    assert polls
    assert "StorageError" in (tmp_path / "workers" / "0.log").read_text()


PLUGIN = Path(__file__).parents[1] / "helpers" / "own_code.py"


def running(folder):
    return sum(kind(trial) == "running" for trial in trials_of(folder))


LOOK_AROUND = """
import os, sys, ray
from adgn.selection import RayExecutor

def look():
    from adgn.training import TASKS
    return os.environ.get("ADGN_DATA"), "own-task" in TASKS

with RayExecutor(address=sys.argv[1]).joined():
    print(*ray.get(ray.remote(look).remote()))
"""


def seen_by_a_worker(cluster):
    """Where a worker on this cluster looks for data, and whether it knows a plugin's task."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK_AROUND, cluster.line],
        env={**os.environ, "ADGN_DATA": "/shared/data", "ADGN_PLUGINS": str(PLUGIN)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.long
def test_workers_in_a_cluster_are_the_drivers_and_a_dead_node_takes_no_trial_with_it(
    tmp_path, undisturbed
):
    """One test, as a cluster takes long to start."""
    pytest.importorskip("ray", reason="Ray, adgn[ray], is not installed")
    folder = tmp_path / "ray"
    with (
        served("ray_cluster.py", tmp_path) as cluster,
        driver_of(folder, subprocess.Popen, executor="ray", ray_address=cluster.line) as driver,
    ):
        with held(folder, -1), held(folder, -2):  # so two trials run until the node dies
            # Each node has one core, so two workers are on two nodes.
            wait_until(lambda: len(workers_seen(folder)) == 2, "second worker", driver)
            wait_until(lambda: running(folder) == 2, "second trial at a time", driver)
            assert cluster.ask("kill") == "killed"
            before = {t.number: (t.value, t.datetime_complete) for t in done(folder)}
        end(driver)
        assert seen_by_a_worker(cluster) == "/shared/data True"
    assert len(before) < TOTAL
    assert finished(folder, "long") == undisturbed[0]
    after = {t.number: (t.value, t.datetime_complete) for t in done(folder)}
    assert {number: after[number] for number in before} == before
    assert len(after) == TOTAL


def test_an_unreachable_cluster_is_told_at_once():
    pytest.importorskip("ray", reason="Ray, adgn[ray], is not installed")
    started = time.monotonic()
    with pytest.raises(ExecutorError, match=r"no Ray cluster answers at '127\.0\.0\.1:1'"):
        RayExecutor(address="127.0.0.1:1").run(None, lambda: None)
    assert time.monotonic() - started < 60  # Ray itself would wait for minutes
    with pytest.raises(ExecutorError, match="write host:port"):
        RayExecutor(address="cluster").run(None, lambda: None)
    for port in ("port", "²", "-1", ""):
        with pytest.raises(ExecutorError, match="is not an address; write host:port"):
            RayExecutor(address=f"127.0.0.1:{port}").check()
    for impossible in ("a" * 70 + ":1", "a\0:1"):
        with pytest.raises(ExecutorError, match="no Ray cluster answers"):
            RayExecutor(address=impossible).check()


def test_a_port_that_is_none_is_not_wrapped_to_one():
    pytest.importorskip("ray", reason="Ray, adgn[ray], is not installed")
    # The system's resolver takes a port modulo 65536: somebody may well answer there.
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        RayExecutor(address=f"127.0.0.1:{port}").check()
        for none in (0, 65536, port + 65536, 99999):
            with pytest.raises(ExecutorError, match="has no possible port; write one from 1 to"):
                RayExecutor(address=f"127.0.0.1:{none}").check()


def test_a_wrong_cluster_leaves_no_study_behind(tiny):
    pytest.importorskip("ray", reason="Ray, adgn[ray], is not installed")
    with pytest.raises(ExecutorError, match="no Ray cluster answers"):
        select(**{**tiny, "executor": "ray", "ray_address": "127.0.0.1:1"})
    assert not tiny["folder"].exists()


def test_ray_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ExecutorError, match=r"pip install 'adgn\[ray\]'"):
        RayExecutor().run(None, lambda: None)


def test_cores_of_a_worker():
    assert RayExecutor(2, "host:1").threads == 1
    assert RayExecutor(2, "host:1", threads=3).threads == 3


class FakeRay:
    """Remembers what is asked of Ray; its tasks are done at once."""

    exceptions = SimpleNamespace(RayTaskError=OSError, RaySystemError=OSError, RayError=OSError)

    def __init__(self, gpus):
        self.gpus = gpus
        self.options = []

    def init(self, **options):
        self.joined = options

    def shutdown(self):
        pass

    def cluster_resources(self):
        return {"CPU": 8.0, **({"GPU": self.gpus} if self.gpus else {})}

    def remote(self, **options):
        self.options.append(options)
        return lambda function: SimpleNamespace(remote=lambda spec: spec)

    def wait(self, running, **_):
        return running, []

    def get(self, _):
        pass


def asked_for(device, gpus):
    ray = FakeRay(gpus)
    spec = WorkerSpec("s", "sqlite://", "folder", 1, 1, 5, device)
    RayExecutor(2, "host:1")._run(ray, spec, lambda: None)
    (options,) = ray.options
    return options


@pytest.mark.parametrize(
    ("device", "gpus", "expected"),
    [("cpu", 4, 0), ("cuda", 4, 1), ("cuda:0", 1, 1), ("auto", 4, 1), ("auto", 0, 0)],
)
def test_a_worker_asks_for_a_gpu_where_it_computes_on_one(device, gpus, expected):
    assert asked_for(device, gpus)["num_gpus"] == expected


def test_gpus_that_a_cluster_cannot_give():
    with pytest.raises(ExecutorError, match=r"device='cuda'.*cluster has no GPU"):
        asked_for("cuda", 0)
    with pytest.raises(ExecutorError, match=r"device='cuda:1'.*use device='cuda'"):
        asked_for("cuda:1", 4)


def test_a_relative_data_root_means_the_same_folder_to_all_workers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADGN_DATA", "data")
    ray = FakeRay(0)
    monkeypatch.setattr("adgn._util.ray_cluster.import_ray", lambda raises: ray)
    monkeypatch.setattr("adgn._util.ray_cluster.check_reachable", lambda address, raises: None)
    with RayExecutor(address="host:1").joined():
        pass
    assert ray.joined["runtime_env"] == {"env_vars": {"ADGN_DATA": str(tmp_path / "data")}}
    monkeypatch.setenv("ADGN_DATA", "")
    with RayExecutor(address="host:1").joined():
        pass
    assert ray.joined["runtime_env"] == {}


def test_the_device_of_a_study_reaches_its_workers(tiny):
    class Keeping:
        def run(self, spec, poll):
            self.spec = spec
            raise KeyboardInterrupt

    keeping = Keeping()
    with pytest.raises(KeyboardInterrupt):
        select(**{**tiny, "executor": keeping, "settings": {"device": "cuda:99"}})
    assert keeping.spec.device == "cuda:99"
