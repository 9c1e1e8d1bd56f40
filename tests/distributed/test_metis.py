"""METIS in this process and in one of its own."""

import tempfile

import numpy as np
import pytest

from adgn.distributed import metis as module
from adgn.distributed.errors import RankError
from adgn.distributed.metis import metis

pytest.importorskip("pymetis")
SIDE = 12


@pytest.fixture
def grid():
    """The neighbours of each place of a square."""
    places = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    across, down = (places[:, :-1], places[:, 1:]), (places[:-1], places[1:])
    ends = np.hstack([np.stack([a.ravel(), b.ravel()]) for a, b in (across, down)])
    ends = np.hstack([ends, ends[::-1]])
    ends = ends[:, np.lexsort(ends)]
    counts = np.bincount(ends[1], minlength=SIDE * SIDE)
    return np.concatenate([[0], counts.cumsum()]).astype(np.int32), ends[0].astype(np.int32)


@pytest.fixture
def apart(monkeypatch, tmp_path):
    """Every graph counts as large, and files go to a folder of the test."""
    monkeypatch.setattr(module, "_SMALL", 0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_process_of_its_own_finds_the_same(grid, apart, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(module, "_SMALL", 10**9)
        here = metis(*grid, 3, seed=1, node_cost=32)
    assert sorted(set(here.tolist())) == [0, 1, 2]
    monkeypatch.setattr(module, "_part", None)  # nothing is done here
    assert metis(*grid, 3, seed=1, node_cost=32).tolist() == here.tolist()
    assert not list(apart.iterdir())


def test_a_process_that_dies_is_told(grid, apart, capfd):
    pointers, neighbours = grid
    with pytest.raises(RankError, match=r"process of METIS ended with exit code .*'ldg' and"):
        metis(pointers.astype(str), neighbours, 3, seed=1, node_cost=32)
    assert "Error" in capfd.readouterr().err
    assert not list(apart.iterdir())
