import time

import pytest

from adgn.bench.timing import interleaved, peak_megabytes


def test_ways_take_turns():
    order = []

    def way(name):
        def step():
            order.append(name)
            time.sleep(0.06)  # two steps fill a turn
            return 1.0

        return step

    timed = interleaved({"a": way("a"), "b": way("b")}, repeats=2)
    # Before the first turn one step warms up and one tells how many make a turn.
    assert order == ["a"] * 4 + ["b"] * 4 + ["a", "a", "b", "b"]
    assert all(len(seen.times) == 2 for seen in timed.values())
    assert all(taken >= 0.06 for seen in timed.values() for taken in seen.times)


def test_a_long_step_is_a_turn_by_itself():
    calls = []
    timed = interleaved({"a": lambda: calls.append(time.sleep(0.11)) or 1.0}, repeats=3)
    assert len(calls) == 1 + 3
    assert len(timed["a"].times) == 3


def test_no_round_starts_after_the_time_is_up():
    timed = interleaved({"a": lambda: time.sleep(0.15) or 1.0}, repeats=50, seconds=0.2)
    assert 1 <= len(timed["a"].times) <= 2


def test_repeats_must_be_positive():
    with pytest.raises(ValueError, match="repeats=0 is not valid"):
        interleaved({}, repeats=0)


def test_the_peak_stays_when_memory_is_given_back():
    before = peak_megabytes()
    block = bytearray(200_000_000)
    for place in range(0, len(block), 4096):
        block[place] = 1
    held = peak_megabytes()
    del block
    assert held >= before
    assert held > 200
    assert peak_megabytes() > held - 1  # Linux counts pages in batches, so not to the byte
