import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adgn.selection import Protocol, Run, SelectionError, protocol_of
from adgn.training import resolve_config


@pytest.mark.parametrize(
    ("task", "runs", "per_split"),
    [
        ("diameter", 4, False),
        ("physics", 25, True),
        ("texas", 10, False),
        ("tree-neighbors-match", 1, False),
    ],
)
def test_the_runs_of_a_trial(task, runs, per_split):
    protocol = protocol_of(resolve_config(task))
    assert len(set(protocol.runs())) == runs
    assert protocol.per_split == per_split


def test_the_papers_seeds():
    assert protocol_of(resolve_config("sssp")).seeds == (41, 95, 12, 35)
    photo = protocol_of(resolve_config("photo"))
    assert photo.seeds == (1978873828, 3780411061, 1201489814, 2805583900, 594910111)
    assert photo.splits == (0, 1, 2, 3, 4)


def test_a_public_split_is_the_only_one():
    config = resolve_config("cora", {"task": {"splits": "public"}})
    assert protocol_of(config).splits is None


def test_a_run_changes_seed_and_split():
    assert Run(3, 1).settings() == {"seed": 3, "task": {"split": 1}}
    assert Run(3).settings() == {"seed": 3}


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=2, max_size=5),
)
def test_splits_are_averaged_within_before_over(rows):
    splits = tuple(range(len(rows)))
    protocol = Protocol(seeds=(1, 2, 3), splits=splits)
    scores = {run: rows[run.split or 0][run.seed - 1] for run in protocol.runs()}
    means = [statistics.fmean(row) for row in rows]
    summary = protocol.summary(scores)
    assert summary.mean == pytest.approx(statistics.fmean(means))
    assert summary.std == pytest.approx(statistics.stdev(means), abs=1e-12)


def test_one_split_spreads_over_initialisations():
    protocol = Protocol(seeds=(1, 2, 3))
    summary = protocol.summary(dict(zip(protocol.runs(), [1.0, 2.0, 3.0], strict=True)))
    assert (summary.mean, summary.std) == (2.0, 1.0)
    assert Protocol(seeds=(1,)).summary({Run(1): 5.0}).std is None


def test_an_error_of_zero_has_no_spread():
    summary = Protocol(seeds=(1, 2)).summary({Run(1): float("-inf"), Run(2): -3.0})
    assert (summary.mean, summary.std) == (float("-inf"), None)
    summary = Protocol(seeds=(1, 2)).summary({Run(1): math.nan, Run(2): 0.5})
    assert math.isnan(summary.mean)
    assert summary.std is None


def test_fewer_seeds_and_splits():
    protocol = protocol_of(resolve_config("texas"), seeds=[7, 8], splits=[0, 9])
    assert protocol.runs() == [Run(7, 0), Run(7, 9), Run(8, 0), Run(8, 9)]


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ("texas", {"splits": [10]}, "splits has 10"),
        ("sssp", {"splits": [0]}, "which has one split"),
        ("sssp", {"seeds": []}, "is empty"),
        ("sssp", {"seeds": [1, 1]}, "twice"),
        ("sssp", {"seeds": [-1]}, "not all in"),
    ],
)
def test_wrong_seeds_and_splits(task, changes, message):
    with pytest.raises(SelectionError, match=message):
        protocol_of(resolve_config(task), **changes)
