"""What a cell keeps of runs and of a study, wherever they come from."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from adgn.experiments.records import Moments, SearchRecord, Tried
from adgn.selection import Protocol, Run
from adgn.selection.halving import Rung
from adgn.selection.replicate import read_scores

CURVE_POINTS = 120
T = TypeVar("T")


def mean_scores(
    protocol: Protocol, by_run: Mapping[Run, Mapping[str, float | None]]
) -> dict[str, Moments]:
    """Mean and deviation of each score by the protocol's rule."""
    scores = {run: read_scores(values) for run, values in by_run.items()}
    found = {}
    for name in next(iter(scores.values())):
        both = protocol.summary({run: values[name] for run, values in scores.items()})
        found[name] = Moments(mean=both.mean, std=both.std)
    return found


def search_record(selection: Mapping[str, Any], how: str, **more: Any) -> SearchRecord:
    """How settings were found.

    Args:
        selection: The content of a selection.json.
        how: In words.
        more: Fields of the record that say something else than the file.
    """
    counts = selection["trials"]
    told = {
        "trials": counts["total"],
        "failed": counts["failed"],
        "how": how,
        "seconds": selection["trial_seconds"],
        "metric": selection.get("metric"),
        "compared_on": selection.get("compared_on"),
        # A file that was written before these were kept has none.
        "rungs": tuple(str(Rung(**rung)) for rung in selection.get("rungs", ())),
        "configurations": tuple(Tried(**one) for one in selection.get("configurations", ())),
    }
    return SearchRecord(**{**told, **more})


def thinned(lines: Sequence[T], points: int = CURVE_POINTS) -> list[T]:
    """So many at most, evenly spread, the first and the last among them.

    Example:
        >>> thinned(range(8), points=4)
        [0, 2, 5, 7]
        >>> thinned("abc", points=4)
        ['a', 'b', 'c']
    """
    if len(lines) <= points:
        return list(lines)
    share = (len(lines) - 1) / (points - 1)
    return [lines[round(share * number)] for number in range(points)]
