"""What every room says when a name is not one of those it knows."""

from collections.abc import Iterable
from difflib import get_close_matches


def unknown_name(argument: str, value: object, choices: Iterable[str]) -> ValueError:
    """The error for a name that is not among the valid ones, with the nearest of them.

    Example:
        >>> unknown_name("phi", "gnc", ["gcn", "sum"])
        ValueError("phi='gnc' is not known. Did you mean 'gcn'? Choose one of: gcn, sum.")
    """
    names = sorted(choices)
    near = get_close_matches(str(value).lower(), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ValueError(
        f"{argument}={value!r} is not known.{hint} Choose one of: {', '.join(names)}."
    )
