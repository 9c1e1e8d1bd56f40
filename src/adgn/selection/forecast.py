"""What a search will cost in hours, by timing a few epochs of configurations of different size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import mean, median
from typing import Any

from adgn.selection.definition import StudyDefinition
from adgn.selection.errors import SelectionError
from adgn.selection.halving import FACTOR, Rung, planned_counts, planned_epochs
from adgn.selection.spaces import grid_size
from adgn.training import Callback, DivergedError, Interrupted, Trainer, resolve_config, train

# What the time of an epoch depends on most; of the two, the smallest and largest values are timed.
LAYERS, UNITS = "model.num_layers", "model.hidden_channels"
_TIMED_EPOCHS = 4
_SECONDS = 20.0  # no more than this for one configuration, once an epoch is over


@dataclass(frozen=True)
class EpochTimes:
    """Measured seconds per epoch.

    Attributes:
        layers: The numbers of layers that were timed, one or two.
        units: The numbers of units, one or two.
        seconds: For each number of layers a row, for each number of units a column; `None` where
            configurations diverge before their first epoch is over.

    Example:
        >>> times = EpochTimes((1, 5), (10,), ((0.1,), (0.5,)))
        >>> round(times.of(3, 10), 6)
        0.3
    """

    layers: tuple[int, ...]
    units: tuple[int, ...]
    seconds: tuple[tuple[float | None, ...], ...]

    def of(self, layers: int, units: int) -> float | None:
        """The seconds of another size, linear in both numbers between those that were timed.

        The true time grows faster than linearly with the units, so that this is rather too much.
        `None`: a time is missing.
        """
        rows = [_between(self.units, row, units) for row in self.seconds]
        return _between(self.layers, rows, layers)


def _between(places: Sequence[int], values: Sequence[float | None], place: int) -> float | None:
    first, last = values[0], values[-1]
    if first is None or last is None:
        return None
    share = (place - places[0]) / max(places[-1] - places[0], 1)
    return first + share * (last - first)


@dataclass(frozen=True)
class Forecast:
    """What a search will cost.

    Attributes:
        configurations: How many are tried.
        space: How many there are.
        rungs: How far they train; without pruning there is one rung.
        counts: How many configurations each rung has.
        epochs: How many epochs each rung has in all, without early stopping.
        seconds_per_epoch: The mean over the space, measured on this machine; `None`: not known.
        slowest: That of the largest configuration.
        workers: How many trials run at a time.
        limit: The hours that the search was given; `None`: any.
    """

    configurations: int
    space: int
    rungs: tuple[Rung, ...]
    counts: tuple[int, ...]
    epochs: tuple[int, ...]
    seconds_per_epoch: float | None
    slowest: float | None
    workers: int
    limit: float | None = None

    @property
    def hours(self) -> float | None:
        """Without early stopping, if those that go on are of average size; `None`: not known."""
        return self._hours(self.seconds_per_epoch)

    @property
    def most_hours(self) -> float | None:
        """Without early stopping, if those that go on are the largest; `None`: not known."""
        return self._hours(self.slowest)

    def _hours(self, later_seconds: float | None) -> float | None:
        """With this time per epoch after the first rung."""
        if self.seconds_per_epoch is None or later_seconds is None:
            return None
        first, *later = self.epochs
        seconds = first * self.seconds_per_epoch + sum(later) * later_seconds
        return seconds / self.workers / 3600


def measure_epochs(definition: StudyDefinition) -> EpochTimes:
    """Times a few epochs of the smallest and largest configurations, in this process.

    Raises:
        KeyboardInterrupt: Ctrl-C came meanwhile.
    """
    layers, units = (_ends(definition, key) for key in (LAYERS, UNITS))
    seconds = tuple(
        tuple(_seconds_per_epoch(definition, {LAYERS: depth, UNITS: width}) for width in units)
        for depth in layers
    )
    return EpochTimes(layers, units, seconds)


def _ends(definition: StudyDefinition, key: str) -> tuple[int, ...]:
    numbers = _numbers(definition, key)
    return tuple(sorted({min(numbers), max(numbers)}))


def _numbers(definition: StudyDefinition, key: str) -> list[int]:
    base = definition.base.model
    there = {LAYERS: base.num_layers, UNITS: base.hidden_channels}
    return definition.space.get(key, [there[key]])


class _Clock(Callback):
    """The seconds of training when epochs end; asks for a stop when it has taken long enough."""

    def __init__(self) -> None:
        self.times: list[float] = [0.0]
        self.enough = False

    def on_epoch(self, trainer: Trainer, line: Mapping[str, Any]) -> None:
        self.times.append(trainer.progress.seconds)
        if self.times[-1] > _SECONDS and trainer.stop_reason() is None:
            self.enough = True
            trainer.request_stop()


def _seconds_per_epoch(definition: StudyDefinition, size: Mapping[str, int]) -> float | None:
    """Of a configuration of this size: that with the first value of each list, or with the last.

    The other is taken where one diverges before an epoch is over. `None`: both do.
    """
    for end in (0, -1):
        others = {key: values[end] for key, values in definition.space.items()}
        times = _epoch_times(definition, {**others, **size})
        if times:
            return median(times[1:] or times)  # the first is slower
    return None


def _epoch_times(definition: StudyDefinition, params: Mapping[str, Any]) -> list[float]:
    config = definition.config(params, definition.protocol.runs()[0])
    clock = _Clock()
    try:
        few = resolve_config(config, {"loop": {"max_epochs": _TIMED_EPOCHS}})
        train(few, callbacks=[clock], evaluate_test=False)
    except Interrupted:
        if not clock.enough:
            raise KeyboardInterrupt from None
    except DivergedError:
        pass  # the epochs until then took as long as others
    return [after - before for before, after in zip(clock.times, clock.times[1:], strict=False)]


def forecast(
    definition: StudyDefinition,
    times: EpochTimes,
    workers: int,
    *,
    configurations: int | None = None,
    limit: float | None = None,
) -> Forecast:
    """What a study will cost.

    Args:
        definition: The study.
        times: Measured by `measure_epochs`.
        workers: How many trials run at a time.
        configurations: How many are tried; by default as many as the study has.
        limit: The hours that the search was given.
    """
    count = definition.budget if configurations is None else configurations
    rungs = _rungs(definition)
    sizes = product(_numbers(definition, LAYERS), _numbers(definition, UNITS))
    measured = [times.of(*size) for size in sizes]
    seconds = [one for one in measured if one is not None]
    known = len(seconds) == len(measured)
    return Forecast(
        configurations=count,
        space=grid_size(definition.space),
        rungs=rungs,
        counts=tuple(planned_counts(count, rungs)),
        epochs=tuple(planned_epochs(count, rungs)),
        seconds_per_epoch=mean(seconds) if known else None,
        slowest=max(seconds) if known else None,
        workers=workers,
        limit=limit,
    )


def _rungs(definition: StudyDefinition) -> tuple[Rung, ...]:
    """Those of halving; of ASHA, which goes by runs; or one with everything."""
    if definition.rungs:
        return definition.rungs
    epochs, runs = definition.base.loop.max_epochs, len(definition.protocol.runs())
    count, rungs = 1, []
    while definition.prune == "asha" and count < runs:
        rungs.append(Rung(epochs=epochs, runs=count, share=count))
        count *= FACTOR
    share = count if definition.prune == "asha" else 1
    return (*rungs, Rung(epochs=epochs, runs=runs, share=share))


def configurations_in(
    hours: float, definition: StudyDefinition, times: EpochTimes, workers: int
) -> int:
    """How many configurations a search can try in some hours.

    Raises:
        SelectionError: Not even one, or the time of an epoch is not known.
    """

    def needed(count: int) -> float:
        found = forecast(definition, times, workers, configurations=count).hours
        if found is None:
            raise SelectionError(
                f"hours={hours:g} needs the time of an epoch, but configurations of this space "
                "diverge in the first one; give trials= (--trials) instead"
            )
        return found

    if not hours > 0 or needed(1) > hours:
        raise SelectionError(
            f"hours={hours:g} is not enough for one configuration, which takes up to "
            f"{needed(1):.2g} hours; give more hours or workers, or fewer runs (--seeds, --splits)"
        )
    least, most = 1, grid_size(definition.space)
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if needed(middle) <= hours else (least, middle - 1)
    return least
