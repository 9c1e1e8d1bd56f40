"""Which configurations of a search are trained again: those that it ended early."""

import shutil
from pathlib import Path

import pytest

from adgn.experiments.records import Cell, SearchRecord, Tried

RESULTS = Path(__file__).parents[2] / "results" / "reproduction"
STEPS = [1.0, 0.1, 0.01]
SPACE = {"model.num_layers": [20], "model.epsilon": STEPS, "model.gamma": [1.0, 0.1, 0.01]}
RUNGS = ("50 epochs", "450 epochs", "1500 epochs")


@pytest.fixture
def misses(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return __import__("halving_misses")


def cell_with(search, epsilon=0.1):
    settings = {"model.num_layers": 20, "model.epsilon": epsilon, "model.gamma": 1.0}
    names = {"experiment": "property", "row": "adgn-ws", "column": "sssp", "budget": "laptop"}
    return Cell(format=1, status="done", settings=settings, search=search, **names)


def tried(epsilon, gamma, *scores, state="complete"):
    settings = {"model.epsilon": epsilon, "model.gamma": gamma}
    return Tried(settings=settings, scores=scores, state=state)


def test_those_with_steps_up_to_the_selected_ones_that_ended_early(misses):
    search = SearchRecord(
        space=SPACE,
        rungs=RUNGS,
        configurations=(
            tried(0.1, 1.0, 0.9, 0.6, 0.3),
            tried(1.0, 1.0, 0.8),
            tried(0.1, 0.1, 0.9, 0.7),
            tried(0.1, 0.01, state="failed"),
        ),
    )
    found = [
        (settings, tried.scores)
        for settings, tried in misses.ended_early(cell_with(search), search)
    ]
    assert found == [({"model.epsilon": 0.1, "model.gamma": 0.1}, (0.9, 0.7))]


def test_one_with_the_full_protocol_was_not_ended(misses):
    search = SearchRecord(
        space=SPACE,
        rungs=RUNGS,
        configurations=(tried(0.1, 1.0, 0.9, 0.6, 0.3), tried(0.1, 0.1, 0.9, 0.7, 0.4)),
    )
    assert not list(misses.ended_early(cell_with(search), search))


def test_all_others_of_a_search_that_did_not_keep_them(misses):
    search = SearchRecord(space=SPACE)
    found = list(misses.ended_early(cell_with(search), search))
    assert found == [
        ({"model.epsilon": 0.1, "model.gamma": 0.1}, None),
        ({"model.epsilon": 0.1, "model.gamma": 0.01}, None),
    ]


def test_after_a_large_step_was_selected_smaller_ones_are_tried_too(misses):
    found = list(
        misses.ended_early(cell_with(SearchRecord(space=SPACE), 1.0), SearchRecord(space=SPACE))
    )
    assert {(s["model.epsilon"], s["model.gamma"]) for s, _ in found} == {
        *((1.0, gamma) for gamma in (0.1, 0.01)),
        *((0.1, gamma) for gamma in (1.0, 0.1, 0.01)),
    }


def test_jobs_are_of_whole_cells_with_the_initialisation_of_the_search(misses, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(RESULTS, copy)
    for path in (copy / "property" / "cells").glob("*.json"):
        if path.stem != "adgn-ldw--sssp":
            path.unlink()
    jobs = list(misses.jobs(["adgn-ws", "adgn-ldw"], ["diameter", "sssp"], copy))
    assert jobs and {(job["row"], job["task"], job["seed"]) for job in jobs} == {
        ("adgn-ldw", "sssp", 41)
    }
    assert {job["ended_after"] for job in jobs} <= {"50 epochs", "450 epochs"}
    assert not list(misses.jobs(["adgn-ws"], ["diameter", "sssp"], copy))
