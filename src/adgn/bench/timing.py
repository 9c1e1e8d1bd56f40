"""Times of several ways to do one thing, taken in turns so that all see the same machine."""

import gc
import math
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Step = Callable[[], float]
# A turn of a way takes at least this long, so that steps of a millisecond can be timed.
SHORTEST_TURN = 0.1


@dataclass
class Timed:
    """What was seen of one way."""

    times: list[float] = field(default_factory=list)  # seconds per step, one entry per turn
    # Of all threads: other work on the machine disturbs them less.
    processor_times: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)  # of the first two steps
    first_seconds: float = 0.0  # of the first step, which prepares and compiles


def interleaved(
    steps: Mapping[str, Step], repeats: int, *, seconds: float = math.inf
) -> dict[str, Timed]:
    """Runs the steps in turns, each once more before its first turn to warm up.

    Args:
        steps: The ways, by name.
        repeats: How many turns each way gets.
        seconds: No further round is started once the rounds have taken this long.

    Example:
        >>> timed = interleaved({"one": lambda: 1.0, "two": lambda: 2.0}, repeats=3)
        >>> {way: (len(seen.times), seen.losses) for way, seen in timed.items()}
        {'one': (3, [1.0, 1.0]), 'two': (3, [2.0, 2.0])}
    """
    if repeats < 1:
        raise ValueError(f"repeats={repeats} is not valid; give at least 1")
    timed = {way: Timed() for way in steps}
    per_turn = dict.fromkeys(steps, 1)
    begin = time.perf_counter()
    gc.collect()
    gc.freeze()  # what is there by now need not be looked at before every turn
    try:
        for turn in range(repeats):
            if turn and time.perf_counter() - begin > seconds:
                break
            for way, step in steps.items():
                seen = timed[way]
                gc.collect()  # so that no way pays for what another one left
                if turn == 0:
                    start = time.perf_counter()
                    seen.losses.append(step())
                    seen.first_seconds = time.perf_counter() - start
                    taken = _turn(seen, step, 1)
                    per_turn[way] = min(1000, math.ceil(SHORTEST_TURN / max(taken, 1e-9)))
                    if per_turn[way] == 1:  # long enough to be a turn by itself
                        continue
                    seen.times.clear()
                    seen.processor_times.clear()
                _turn(seen, step, per_turn[way])
    finally:
        gc.unfreeze()
    return timed


def _turn(seen: Timed, step: Step, count: int) -> float:
    """Runs a turn of so many steps and notes its time per step, which it returns."""
    start, processor_start = time.perf_counter(), time.process_time()
    for _ in range(count):
        loss = step()
    seen.times.append((time.perf_counter() - start) / count)
    seen.processor_times.append((time.process_time() - processor_start) / count)
    if len(seen.losses) < 2:
        seen.losses.append(loss)
    return seen.times[-1]


def peak_megabytes() -> float:
    """The most resident memory that this process has held, in MB (10⁶ bytes)."""
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"VmHWM:\s*(\d+)", status.read_text())):
        return int(found[1]) * 1024 / 1e6
    # Elsewhere; on Linux this would count the memory of the process that started this one.
    import resource  # not there on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6
