import pytest

from adgn.bench import timing
from adgn.bench.timing import interleaved, peak_megabytes


class Clock:
    """Time that only steps spend."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now

    def process_time(self):
        return 2 * self.now  # as with two threads

    def step(self, seconds, log=None, name=""):
        def run():
            self.now += seconds
            if log is not None:
                log.append(name)
            return 1.0

        return run


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)
    return clock


def test_ways_take_turns(clock):
    order = []
    steps = {"a": clock.step(0.0625, order, "a"), "b": clock.step(0.078125, order, "b")}
    timed = interleaved(steps, repeats=2)
    # Before the first turn one step warms up and one tells how many make a turn: two.
    assert order == ["a"] * 4 + ["b"] * 4 + ["a", "a", "b", "b"]
    assert timed["a"].times == pytest.approx([0.0625, 0.0625])
    assert timed["a"].processor_times == pytest.approx([0.125, 0.125])
    assert timed["b"].times == pytest.approx([0.078125] * 2)


def test_a_long_step_is_a_turn_by_itself(clock):
    order = []
    timed = interleaved({"a": clock.step(0.5, order)}, repeats=3)
    assert len(order) == 1 + 3
    assert timed["a"].times == pytest.approx([0.5] * 3)


def test_no_round_starts_after_the_time_is_up(clock):
    steps = {"a": clock.step(0.5), "b": clock.step(0.25)}
    timed = interleaved(steps, repeats=50, seconds=2.0)
    # The first round takes 1.5 s with its warm-up, the next one 0.75 s.
    assert [len(seen.times) for seen in timed.values()] == [2, 2]


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
