"""Real processes: a rank that is killed or hangs ends the run, which goes on from its state."""

import os
import signal
import socket
import time

import pytest
import torch

from adgn.distributed.errors import RankError
from adgn.training import Callback, resolve_config, resume, train
from adgn.training.launch import (
    check_counts,
    in_torchrun,
    local_ranks,
    rank_device,
    torchrun_ranks,
)

SMALL = {
    "task": {"name": "graph-transfer", "distance": 3, "train": 24, "val": 8, "test": 8},
    "model": {"hidden_channels": 4, "num_layers": 3},
    "loop": {"max_epochs": 6, "batch_size": 12},
    "checkpoint": {"every_epochs": 1},
}
CONFIG = resolve_config(SMALL)


class Signal(Callback):
    """Sends a signal to rank 1 after an epoch."""

    def __init__(self, epoch, number):
        self.epoch, self.number, self.sent = epoch, number, None

    def on_epoch(self, trainer, line):
        if line["epoch"] == self.epoch:
            (worker,) = trainer.ranks._watch.__self__._ranks
            os.kill(worker.process.pid, self.number)
            self.sent = time.monotonic()


def weights_of(result):
    return torch.cat([weight.flatten() for weight in result.model.state_dict().values()])


@pytest.fixture
def whole(warm_workers):
    """A run of two ranks that nothing disturbs."""
    with local_ranks(2, CONFIG, timeout=60) as ranks:
        return train(CONFIG, ranks=ranks)


def test_a_killed_rank(whole, tmp_path):
    assert torch.allclose(weights_of(train(CONFIG)), weights_of(whole), atol=1e-6)
    folders = [tmp_path / name for name in ("two", "one")]
    for folder in folders:
        kill = Signal(3, signal.SIGKILL)
        with (
            pytest.raises(RankError, match=r"rank 1 is lost: its process was ended by SIGKILL"),
            local_ranks(2, CONFIG, timeout=60) as ranks,
        ):
            train(CONFIG, run_dir=folder, ranks=ranks, callbacks=[kill])
        assert time.monotonic() - kill.sent < 20
    with local_ranks(2, CONFIG, timeout=60) as ranks:
        again = resume(folders[0], ranks=ranks)
    assert again.epochs == 6 and weights_of(again).equal(weights_of(whole))
    alone = resume(folders[1])  # with another number of ranks
    assert torch.allclose(weights_of(alone), weights_of(whole), atol=1e-6)
    assert [line["epoch"] for line in alone.history] == [1, 2, 3, 4, 5, 6]


@pytest.mark.long
def test_a_rank_that_hangs(warm_workers, tmp_path):
    stop = Signal(2, signal.SIGSTOP)
    with (
        pytest.raises(RankError, match=r"rank 1 gives no sign of life"),
        local_ranks(2, CONFIG, timeout=6) as ranks,
    ):
        train(CONFIG, run_dir=tmp_path / "run", ranks=ranks, callbacks=[stop])
    assert time.monotonic() - stop.sent < 40


def test_more_ranks_than_graphs(warm_workers):
    config = resolve_config(SMALL, {"loop": {"batch_size": 1}})
    with (
        pytest.raises(RankError, match=r"2 ranks cannot share batches of 1 graphs"),
        local_ranks(2, config, timeout=60) as ranks,
    ):
        train(config, ranks=ranks)


def test_counts_and_devices():
    for arguments in ((0, None, 1.0), (2, 0, 1.0), (2, 1, 0.0)):
        with pytest.raises(RankError, match="is not valid"):
            check_counts(*arguments)
    assert rank_device("cpu", 3) == torch.device("cpu")


def test_a_port_in_use(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        variables = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
        variables["MASTER_PORT"] = str(server.getsockname()[1])
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert in_torchrun()
        with (
            pytest.raises(RankError, match=r"ranks cannot meet at 127.0.0.1:\d+"),
            torchrun_ranks(CONFIG, timeout=5),
        ):
            pass
