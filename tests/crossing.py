"""A part of all combinations of options, and the rest of them for `make exhaustive`."""

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any

import pytest

exhaustive = pytest.mark.exhaustive


def covering(names: str, *axes: Iterable[Any], strength: int = 1) -> pytest.MarkDecorator:
    """Parametrises with all combinations of options; some that cover them are in `make test`.

    `strength=1`: each option of each axis is in one of them; `strength=2`: each pair of options of
    two axes. The others are marked `exhaustive`.
    """
    options = [list(axis) for axis in axes]
    places = list(product(*(range(len(axis)) for axis in options)))
    chosen = _cover(places, strength)
    return pytest.mark.parametrize(
        names,
        [
            pytest.param(
                *(axis[number] for axis, number in zip(options, place, strict=True)),
                marks=() if place in chosen else exhaustive,
            )
            for place in places
        ],
    )


def _cover(places: list[tuple[int, ...]], strength: int) -> set[tuple[int, ...]]:
    """Places with which every combination of so many axes is met, the most telling ones first."""

    def parts(place: tuple[int, ...]) -> set[tuple[tuple[int, int], ...]]:
        return set(combinations(enumerate(place), strength))

    missing = {part for place in places for part in parts(place)}
    chosen: set[tuple[int, ...]] = set()
    while missing:
        best = max(places, key=lambda place: len(parts(place) & missing))
        chosen.add(best)
        missing -= parts(best)
    return chosen
