"""Benchmarks of single trainings: what is there is not trained again."""

import json
import shutil
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from adgn.experiments.records import Cell
from adgn.training import resolve_config

RESULTS = Path(__file__).parents[2] / "results" / "reproduction"


@pytest.fixture
def script(monkeypatch):
    """A script by its name, imported as it is when it is run."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return import_module


def runs_of(out):
    return json.loads(out.read_text())["runs"]


def test_only_what_is_missing_is_done(script, tmp_path):
    out, done = tmp_path / "runs.json", []

    def measure(seed):
        done.append(seed)
        return {"accuracy": seed / 10}

    for seeds in ((1, 2), (1, 2, 3)):
        script("kept_runs").do_missing(out, ({"seed": seed} for seed in seeds), measure, of="x")
    assert done == [1, 2, 3]
    assert [run["accuracy"] for run in runs_of(out)] == [0.1, 0.2, 0.3]
    assert json.loads(out.read_text())["of"] == "x"


def test_an_outdated_run_gives_way_to_the_new_one(script, tmp_path):
    out = tmp_path / "runs.json"
    for rate, splits in ((0.1, (0, 1)), (0.2, (0,))):
        jobs = [{"split": split, "rate": rate} for split in splits]
        script("kept_runs").do_missing(
            out, jobs, lambda split, rate: {"accuracy": rate}, known_by=["split"]
        )
    assert sorted((run["split"], run["accuracy"]) for run in runs_of(out)) == [(0, 0.2), (1, 0.1)]


def test_jobs_are_all_combinations_in_order(script):
    jobs = list(script("kept_runs").every(task=["a", "b"], split=range(2)))
    assert [(job["task"], job["split"]) for job in jobs] == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_a_training_gives_its_accuracies(script, monkeypatch):
    kept_runs = script("kept_runs")
    scores = {"test": {"accuracy": 0.25}, "val": {"accuracy": 0.5}}
    result = SimpleNamespace(scores=scores, epochs=7, best_epoch=3)
    monkeypatch.setattr(kept_runs, "train", lambda config: result)
    found = kept_runs.trained(resolve_config("texas"))
    assert (found["accuracy"], found["validation"], found["best_epoch"]) == (0.25, 0.5, 3)


def jobs_of(script, wanted, splits, folder=RESULTS):
    return list(script("kept_runs").cell_jobs(["chameleon"], splits, folder, wanted))


def test_cells_whose_published_runs_were_ended_by_the_loss(script):
    stopping = script("stopping_accuracy")
    jobs = jobs_of(script, stopping.stopped_by_loss, 2)
    rows = {job["row"] for job in jobs}
    assert {"gcn", "gat"} <= rows
    assert not rows & {"h2gcn", "graphsage", "adgn-sum", "fa"}  # not known, or by the accuracy
    assert {job["split"] for job in jobs} == {0, 1}
    config = script("kept_runs").cell_config(jobs[0], stopping.CHANGE)
    assert (config.stopping.monitor, config.task.split) == ("loss", 0)


def test_cells_of_another_definition_are_left_out(script, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(RESULTS, copy)
    cell = copy / "heterophily" / "cells" / "gcn--chameleon.json"
    about = json.loads(cell.read_text())
    cell.write_text(json.dumps({**about, "fingerprint": "0" * 32}))
    rows = {job["row"] for job in jobs_of(script, lambda title, cell: True, 1, copy)}
    assert "gat" in rows and "gcn" not in rows


def test_cells_that_drop_features_are_trained_without_that(script):
    first = script("first_dropout_accuracy")
    for settings, wanted in (
        ({"model.first_dropout": "features", "model.dropout": 0.3}, True),
        ({"model.first_dropout": "features", "model.dropout": 0.0}, False),
        ({"model.dropout": 0.3}, False),
    ):
        names = {"experiment": "heterophily", "row": "ggcn", "column": "texas", "budget": "laptop"}
        cell = Cell(format=1, status="done", settings=settings, **names)
        assert first.drops_features("GGCN", cell) == wanted
    settings = {"model.first_dropout": "features", "model.dropout": 0.3}
    job = {"row": "ggcn", "task": "texas", "seed": 0, "split": 1, "settings": settings}
    config = script("kept_runs").cell_config(job, first.CHANGE)
    assert config.model.options["first_dropout"] == "states"
    assert (config.model.options["dropout"], config.task.split) == (0.3, 1)


def test_a_run_is_over_a_hundred_epochs_after_its_best(script):
    rule = script("published_gcn").Rule(ties=False)
    for epoch in range(1, 300):
        rule.look(score=min(epoch, 50), accuracy=epoch / 1000, epoch=epoch)
    assert rule.over
    assert (rule.epoch, rule.accuracy) == (50, 0.05)
    rule.look(score=99.0, accuracy=1.0, epoch=300)
    assert rule.epoch == 50


def test_with_ties_the_later_of_two_equal_epochs_is_the_best(script):
    rule = script("published_gcn").Rule(ties=True)
    for epoch in (1, 2, 3):
        rule.look(score=0.5, accuracy=epoch / 10, epoch=epoch)
    assert (rule.epoch, rule.accuracy) == (3, 0.3)


def test_nodes_hear_the_targets_of_their_edges(script):
    """0 → 1, 0 → 2, and 2 → 2: with self loops the sizes of rows are 3, 1 and 2."""
    operator = script("published_gcn").propagation(torch.tensor([[0, 0, 2], [1, 2, 2]]), 3)
    third, sixth = 1 / 3, 1 / 6**0.5
    expected = [[third, 3**-0.5, sixth], [0, 1, 0], [0, 0, 1]]
    torch.testing.assert_close(operator, torch.tensor(expected))
