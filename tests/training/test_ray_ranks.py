"""Ranks on a Ray cluster of two nodes; a run that lost one goes on from its state."""

import json
import subprocess
import sys
import time

import pytest
import torch

from adgn.distributed.partition import METHODS
from adgn.training import resolve_config, resume, train
from adgn.training.ray_ranks import absolute_partition
from tests import warm
from tests.servers import served
from tests.training.test_launch import SMALL, weights_of

PROGRAM = """
import json, sys, time
from pathlib import Path
from adgn.distributed.errors import RankError
from adgn.training import resolve_config
from adgn.training.ray_ranks import train_on_ray

config = resolve_config(json.loads(sys.argv[3]))
try:
    train_on_ray(config, Path(sys.argv[2]), workers=2, address=sys.argv[1], timeout=60)
except RankError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
"""


def test_a_partition_is_where_the_command_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute_partition("two/parts") == str(tmp_path.resolve() / "two" / "parts")
    assert [absolute_partition(method) for method in METHODS] == [*METHODS]


@pytest.mark.long
def test_a_lost_node(tmp_path):
    """One test, as a cluster takes long to start."""
    for name in ("ray", "pandas", "tensorboardX"):
        pytest.importorskip(name, reason="Ray Train, adgn[ray], is not installed")
    settings = {**SMALL, "loop": {"max_epochs": 400, "batch_size": 12}}
    lost, whole = tmp_path / "lost", tmp_path / "whole"
    with served("ray_cluster.py", tmp_path) as cluster:
        # The drivers begin with all imports done; the ranks are processes that Ray starts.
        short = [sys.executable, "-c", PROGRAM, cluster.line, str(whole), json.dumps(SMALL)]
        done = warm.run(short)
        assert done.returncode == 0, done.stderr
        command = [sys.executable, "-c", PROGRAM, cluster.line, str(lost), json.dumps(settings)]
        with warm.Popen(command, stderr=subprocess.PIPE, text=True) as driver:
            metrics = lost / "metrics.jsonl"
            limit = time.monotonic() + 300
            while not metrics.exists() or metrics.stat().st_size < 1000:
                assert driver.poll() is None and time.monotonic() < limit
                time.sleep(0.1)
            assert cluster.ask("kill") == "killed"
            _, said = driver.communicate(timeout=120)
        assert driver.returncode == 3, said
        assert "the run on Ray ended" in said
    # Two ranks in Ray are two ranks, and the lost run is there to go on in one process.
    alone = train(resolve_config(SMALL))
    assert torch.allclose(weights_of(resume(whole)), weights_of(alone), atol=1e-6)
    again = resume(lost)
    assert again.epochs == 400
    # Adam divides by gradients that are nearly zero, so that the rounding of sums over ranks grows.
    expected = train(resolve_config(settings))
    assert torch.allclose(weights_of(again), weights_of(expected), atol=1e-3)
