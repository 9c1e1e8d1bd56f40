"""Reproductions that run in this process."""

import pytest
import torch

from adgn.experiments.api import reproduce
from tests.experiments.workers import HereWorker


@pytest.fixture
def here(monkeypatch, tmp_path, tmp_path_factory):
    """`reproduce` with workers in this process, tiny data made in an empty data root."""
    monkeypatch.setattr("adgn._util.processes.Worker", HereWorker)
    monkeypatch.setattr(HereWorker, "deaths", 0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def call(*experiments, **options):
        usual = {"budget": "smoke", "out": tmp_path / "out", "root": tmp_path / "data"}
        return reproduce(list(experiments), **{**usual, **options})

    yield call
    torch.set_num_threads(threads)
