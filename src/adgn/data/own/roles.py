"""Which column of a table is the id, the source, the target, the weight."""

from collections.abc import Iterable, Sequence

from adgn._util.suggestions import unknown_name
from adgn.data.root import GraphInputError

IDS = ("id", "node_id", "nodeid", "node")
ENDS = (
    ("source", "target"),
    ("src", "dst"),
    ("from", "to"),
    ("u", "v"),
    ("source_id", "target_id"),
    ("from_id", "to_id"),
    ("node1", "node2"),
)
WEIGHTS = ("weight", "weights")


def check_columns(argument: str, wanted: Iterable[str], names: Sequence[str], label: str) -> None:
    """Raises where a column that the user named is not there, with the nearest that is.

    Example:
        >>> check_columns("weight", ["wieght"], ["source", "target", "weight"], "edges.csv")
        Traceback (most recent call last):
        adgn.data.root.GraphInputError: edges.csv: weight='wieght' is not known. Did you mean
        'weight'? Choose one of: source, target, weight.
    """
    for name in wanted:
        if name not in names:
            raise GraphInputError(f"{label}: {unknown_name(argument, name, names)}")


def find_id(given: str | None, names: Sequence[str], label: str) -> tuple[str, list[str]]:
    """The column with the ids of nodes, and what was assumed."""
    if given is not None:
        check_columns("id", [given], names, label)
        return given, []
    found = [name for usual in IDS for name in names if name.lower() == usual]
    if found[:1] and found[0].lower() == "id":
        found = found[:1]
    if len(found) > 1:
        raise GraphInputError(
            f"{label} has several columns that may be the ids of nodes: {_listed(found)}; say "
            f"which with id='{found[0]}'"
        )
    if found:
        return found[0], [f"{label}: column {found[0]!r} is taken as the id of nodes"]
    return names[0], [f"{label}: the first column, {names[0]!r}, is taken as the id of nodes"]


def find_ends(
    source: str | None, target: str | None, names: Sequence[str], label: str
) -> tuple[str, str, list[str]]:
    """The columns with the two ends of edges, and what was assumed."""
    if (source is None) != (target is None):
        given, lacking = ("source", "target") if target is None else ("target", "source")
        raise GraphInputError(
            f"{given} was given without {lacking}; name both columns of {label}: {_listed(names)}"
        )
    if source is not None and target is not None:
        check_columns("source", [source], names, label)
        check_columns("target", [target], names, label)
        if source == target:
            raise GraphInputError(f"{label}: source and target are the same column, {source!r}")
        return source, target, []
    lower = {name.lower(): name for name in names}
    pairs = [(lower[a], lower[b]) for a, b in ENDS if a in lower and b in lower]
    if len(pairs) > 1:
        listed = " and ".join(f"{a!r}, {b!r}" for a, b in pairs)
        raise GraphInputError(
            f"{label} has several pairs of columns that may be the ends of edges: {listed}; say "
            f"which with source='{pairs[0][0]}', target='{pairs[0][1]}'"
        )
    if pairs:
        (first, second), how = pairs[0], ""
    elif len(names) < 2:
        raise GraphInputError(
            f"{label} has one column, {names[0]!r}; edges need two, the ids of their ends"
        )
    else:
        (first, second), how = (names[0], names[1]), "the first two columns, "
    return first, second, [f"{label}: {how}{first!r} and {second!r} are taken as ends of edges"]


def find_weight(
    given: str | None, names: Sequence[str], label: str
) -> tuple[str | None, list[str]]:
    """The column with the weights of edges, if there is one, and what was assumed."""
    if given is not None:
        check_columns("weight", [given], names, label)
        return given, []
    found = [name for name in names if name.lower() in WEIGHTS]
    if not found:
        return None, []
    return found[0], [f"{label}: column {found[0]!r} is taken as the weight of edges"]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
