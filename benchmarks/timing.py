"""Times of several ways to do one thing, taken in turns so that all see the same machine."""

import gc
import resource
import statistics
import time
from collections.abc import Callable, Mapping

Step = Callable[[], object]


def interleaved(
    steps: Mapping[str, Step],
    repeats: int,
    warm_up: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The median seconds of each step over `repeats` rounds, each running all of them once.

    Args:
        steps: What to time, by name.
        repeats: How many rounds.
        warm_up: How many rounds before them are not counted.
        clock: `time.process_time` counts processor seconds, which on a machine shared with others
            say more than the wall clock does.
    """
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(warm_up + repeats):
        for name, step in steps.items():
            gc.collect()
            start = clock()
            step()
            if turn >= warm_up:
                times[name].append(clock() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}


def peak_megabytes() -> float:
    """The most memory this process has held at once."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
