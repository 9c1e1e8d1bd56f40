"""What is said when a name is not one of those that are known: the nearest of them."""

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from types import MappingProxyType

from adgn._util.names import shortened

_NONE: Mapping[str, str] = MappingProxyType({})
_SMALLEST = 0.6  # the closeness below which a name is another name, not a slip


def unknown_name(
    argument: str, value: object, choices: Iterable[str], aliases: Mapping[str, str] = _NONE
) -> ValueError:
    """The error for a name that is not among the valid ones, with the nearest of them.

    `aliases` are names used elsewhere, each with the valid one.

    Example:
        >>> unknown_name("phi", "gnc", ["gcn", "sum"])
        ValueError("phi='gnc' is not known. Did you mean 'gcn'? Choose one of: gcn, sum.")
    """
    names = sorted(choices)
    near = nearest(value, [*names, *aliases])
    hint = did_you_mean(near and aliases.get(near, near))
    return ValueError(
        f"{argument}={shortened(value)} is not known.{hint} Choose one of: {', '.join(names)}."
    )


def did_you_mean(name: str | None) -> str:
    """The sentence that suggests a name, with a space before it; nothing for `None`."""
    return "" if name is None else f" Did you mean {name!r}?"


def nearest(value: object, choices: Iterable[str]) -> str | None:
    """The choice that was probably meant: mistyped, abbreviated, written out or cut short.

    Example:
        >>> nearest("gnc", ["gin", "gcn"]), nearest("learning_rate", ["name", "lr"])
        ('gcn', 'lr')
        >>> nearest("layers", ["num_layers", "dropout"]), nearest("transformer", ["gin", "gcn"])
        ('num_layers', None)
    """
    given = _normalised(value)
    ranked = [(_closeness(given, _normalised(name)), name) for name in choices]
    near = max(ranked, key=lambda pair: pair[0], default=((0.0, 0), None))
    return near[1] if near[0][0] >= _SMALLEST else None


def _normalised(value: object) -> str:
    return str(value).lower().replace("-", "_").replace(" ", "_")


def _closeness(given: str, name: str) -> tuple[float, int]:
    """How near a name is, 1 for equal; of equally near ones that with the fewest slips."""
    slips = _slips(given, name)
    length = max(len(given), len(name), 1)
    close = max(1 - slips / length, SequenceMatcher(None, given, name).ratio())
    short, long = sorted((given, name), key=len)
    if len(short) > 1 and short == _initials(long):
        close = max(close, 0.9)
    elif len(short) > 2 and (long.startswith(short) or short in long.split("_")):
        close = max(close, 0.8)
    return close, -slips


def _initials(name: str) -> str:
    return "".join(part[:1] for part in name.split("_"))


def _slips(given: str, name: str) -> int:
    """Letters added, left out, replaced or swapped with their neighbour, at the fewest."""
    before, row = [0] * (len(name) + 1), list(range(len(name) + 1))
    for i, letter in enumerate(given):
        after = [i + 1]
        for j, other in enumerate(name):
            cost = min(after[j] + 1, row[j + 1] + 1, row[j] + (letter != other))
            if i and j and letter == name[j - 1] and given[i - 1] == other:
                cost = min(cost, before[j - 1] + 1)
            after.append(cost)
        before, row = row, after
    return row[-1]
