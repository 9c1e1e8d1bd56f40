import itertools
import random

import pytest

from adgn.selection import SelectionError
from adgn.selection.halving import (
    Entry,
    Rung,
    planned_counts,
    planned_epochs,
    rungs_of,
    wanted_entries,
)


@pytest.mark.parametrize(
    ("max_epochs", "patience", "runs", "expected"),
    [
        (1500, 100, 1, [(50, 1, 1), (450, 1, 3), (1500, 1, 27)]),
        (1500, None, 1, [(56, 1, 1), (504, 1, 3), (1500, 1, 27)]),
        (10000, 50, 3, [(25, 1, 1), (225, 1, 3), (10000, 1, 27), (10000, 3, 81)]),
        (
            1500,
            100,
            10,
            [(50, 1, 1), (450, 1, 3), (1500, 1, 27), (1500, 3, 81), (1500, 10, 243)],
        ),
        (40, 0, 2, [(1, 1, 1), (40, 1, 3), (40, 2, 27)]),
        (1, None, 1, [(1, 1, 1)]),
    ],
)
def test_rungs_follow_the_protocol(max_epochs, patience, runs, expected):
    assert [(r.epochs, r.runs, r.share) for r in rungs_of(max_epochs, patience, runs)] == expected


def test_rungs_lie_where_scores_are_measured():
    rungs = rungs_of(1000, None, 1, evaluate_every=40)
    assert [rung.epochs for rung in rungs] == [40, 360, 1000]
    assert [rung.epochs for rung in rungs_of(100, None, 1, evaluate_every=60)] == [100]


def test_a_first_rung_of_ones_own():
    assert [rung.epochs for rung in rungs_of(1500, 100, 1, first=25)] == [25, 225, 675, 1500]
    assert [rung.epochs for rung in rungs_of(1500, 100, 1, first=1500)] == [1500]
    for wrong in (0, 1501):
        with pytest.raises(SelectionError, match=f"first_rung={wrong} is not valid; give 1 to"):
            rungs_of(1500, 100, 1, first=wrong)


def test_what_it_costs():
    rungs = rungs_of(1500, 100, 1)
    assert planned_counts(96, rungs) == [96, 32, 4]
    assert planned_epochs(96, rungs) == [96 * 50, 32 * 400, 4 * 1050]
    assert 96 * 1500 / sum(planned_epochs(96, rungs)) > 6
    # The last rung has more than one to choose from, where there are more.
    assert planned_counts(5, rungs) == [5, 3, 3]
    assert planned_counts(2, rungs) == [2, 2, 2]


RUNGS = [Rung(epochs=1), Rung(epochs=3, share=3), Rung(epochs=9, share=9)]
KEYS = [f"{number:02}" for number in range(27)]


def searched(outcome, keys=KEYS, order=None, maximize=True):
    """The scores of a whole search, of which any waiting entry may be the next one to end."""
    scores = {}
    while True:
        rungs, over = wanted_entries(keys, scores, RUNGS, maximize=maximize)
        entries = [Entry(key, number) for number, keys_ in enumerate(rungs) for key in keys_]
        waiting = [entry for entry in entries if entry not in scores]
        if not waiting:
            assert over
            return scores
        assert not over
        chosen = waiting[0] if order is None else order.choice(waiting)
        scores[chosen] = outcome(chosen)


def in_rung(scores, number):
    return {entry.key for entry in scores if entry.rung == number}


@pytest.mark.parametrize("maximize", [True, False])
def test_the_best_third_goes_on(maximize):
    sign = 1 if maximize else -1
    scores = searched(lambda entry: sign * float(entry.key), maximize=maximize)
    assert in_rung(scores, 1) == set(KEYS[-9:])
    assert in_rung(scores, 2) == set(KEYS[-3:])


def test_of_equals_the_first_key_goes_on():
    assert in_rung(searched(lambda entry: 0.5), 1) == set(KEYS[:9])
    assert in_rung(searched(lambda entry: 0.5, keys=KEYS[::-1]), 1) == set(KEYS[:9])


def test_one_that_fails_is_replaced_by_the_next_best():
    def outcome(entry):
        return None if entry in (Entry("26", 1), Entry("20", 0)) else float(entry.key)

    scores = searched(outcome)
    assert in_rung(scores, 1) == {*KEYS[16:20], *KEYS[21:]}  # 26 failed there, 20 before
    assert in_rung(scores, 2) == set(KEYS[23:26])


def test_a_rung_with_nobody_left_gets_more_from_below():
    def outcome(entry):
        return None if entry.rung == 2 and int(entry.key) > 10 else float(entry.key)

    scores = searched(outcome)
    assert in_rung(scores, 2) == set(KEYS[8:])  # until three of them, 08 to 10, succeed
    assert in_rung(scores, 1) == set(KEYS[8:])


def test_a_search_in_which_all_fail_ends():
    assert len(searched(lambda entry: None)) == 27
    scores = searched(lambda entry: None if entry.rung == 2 else 0.0)
    assert [len(in_rung(scores, number)) for number in range(3)] == [27, 27, 27]


@pytest.mark.parametrize("seed", range(20))
def test_the_order_in_which_trials_end_does_not_matter(seed):
    chance = random.Random(seed)
    drawn = {
        Entry(key, number): None if chance.random() < 0.3 else round(chance.random(), 1)
        for key, number in itertools.product(KEYS, range(3))
    }
    expected = searched(drawn.__getitem__)
    assert searched(drawn.__getitem__, order=chance) == expected
    good = [e for e, score in expected.items() if e.rung == 2 and score is not None]
    assert len(good) == 3
