"""Benchmarks of single trainings: what is there is not trained again."""

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from adgn.training import resolve_config


@pytest.fixture
def script(monkeypatch):
    """A script by its name, imported as it is when it is run."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return import_module


def test_only_what_is_missing_is_trained(script, tmp_path, monkeypatch):
    kept_runs, trained = script("kept_runs"), []

    def train(config):
        trained.append(config.seed)
        scores = {"test": {"accuracy": config.seed / 10}, "val": {"accuracy": 0.5}}
        return SimpleNamespace(scores=scores, epochs=7)

    monkeypatch.setattr(kept_runs, "train", train)
    out = tmp_path / "runs.json"
    for seeds in ((1, 2), (1, 2, 3)):
        jobs = [{"seed": seed} for seed in seeds]
        kept_runs.do_missing(
            out, jobs, lambda seed: resolve_config("texas", {"seed": seed}), of="x"
        )
    assert trained == [1, 2, 3]
    written = json.loads(out.read_text())
    assert [run["accuracy"] for run in written["runs"]] == [0.1, 0.2, 0.3]
    assert written["of"] == "x" and written["runs"][0]["epochs"] == 7


def test_cells_whose_published_runs_were_ended_by_the_loss(script):
    stopping = script("stopping_accuracy")
    jobs = list(stopping.jobs_of(["chameleon"], splits=2))
    rows = {job["row"] for job in jobs}
    assert {"gcn", "gat", "mlp"} <= rows
    assert not rows & {"h2gcn", "graphsage", "adgn-sum", "fa"}  # not known, or by the accuracy
    assert {job["split"] for job in jobs} == {0, 1}
    config = stopping.config(**jobs[0])
    assert (config.stopping.monitor, config.task.split) == ("loss", 0)


def test_a_run_is_over_a_hundred_epochs_after_its_best(script):
    rule = script("published_gcn").Rule()
    for epoch in range(1, 300):
        rule.look(score=min(epoch, 50), accuracy=epoch / 1000, epoch=epoch)
    assert rule.over
    assert (rule.epoch, rule.accuracy) == (50, 0.05)
    rule.look(score=99.0, accuracy=1.0, epoch=300)
    assert rule.epoch == 50


def test_nodes_hear_the_targets_of_their_edges(script):
    """0 → 1, 0 → 2, and 2 → 2: with self loops the sizes of rows are 3, 1 and 2."""
    operator = script("published_gcn").propagation(torch.tensor([[0, 0, 2], [1, 2, 2]]), 3)
    third, sixth = 1 / 3, 1 / 6**0.5
    expected = [[third, 3**-0.5, sixth], [0, 1, 0], [0, 0, 1]]
    torch.testing.assert_close(operator, torch.tensor(expected))
