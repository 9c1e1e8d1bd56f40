"""The table of nodes, taken apart."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adgn._util.names import shortened
from adgn.data.own.arrow import plain_array, unknown_as_null
from adgn.data.own.columns import as_text, is_number
from adgn.data.own.graph import Level
from adgn.data.own.ids import check_unique, tidy_ids
from adgn.data.own.roles import check_columns, find_id
from adgn.data.own.tables import Table, open_table
from adgn.data.own.textfiles import TextFile, TextFormat
from adgn.data.root import GraphInputError

Integers = NDArray[np.int64]
SPLITS = {
    "train": "train",
    "training": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "test": "test",
}


@dataclass(frozen=True)
class TableOptions:
    """What the user says about the columns; see `Graph.from_tables`."""

    id: str | None = None
    source: str | None = None
    target: str | None = None
    target_column: str | Sequence[str] | None = None
    weight: str | None = None
    graph: str | None = None
    directed: bool | None = None
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    categories: Sequence[str] = ()
    groups: str | None = None
    time: str | None = None
    split: str | None = None
    level: Level | None = None
    for_prediction: bool = False
    form: TextFormat = field(default_factory=TextFormat)

    @property
    def targets(self) -> list[str]:
        """The names of the target columns."""
        if self.target_column is None:
            return []
        return (
            [self.target_column] if isinstance(self.target_column, str) else [*self.target_column]
        )

    @property
    def for_splits(self) -> dict[str, str]:
        """The columns that decide how rows are split, which a prediction does not do."""
        roles = {"groups": self.groups, "time": self.time, "split": self.split}
        return {
            role: name
            for role, name in roles.items()
            if name is not None and not self.for_prediction
        }


@dataclass(frozen=True)
class Nodes:
    """The table of nodes, taken apart; nodes of one graph beside one another."""

    table: Table
    id_column: str
    ids: pa.Array
    columns: pa.Table
    target: pa.Table | None
    special: dict[str, pa.Array | None]
    graph: Integers | None
    graph_ids: pa.Array | None
    notes: list[str]


def opened(source: Any, argument: str, form: TextFormat) -> Table:
    """Looks at a table, and refuses one whose columns another sign separates."""
    table = open_table(source, argument, form)
    if isinstance(table, TextFile) and (delimiter := table.other_delimiter()):
        raise table.wrong_delimiter(delimiter)
    return table


def read_nodes(table: Table, options: TableOptions, *, has_graph_table: bool) -> Nodes:
    """Ids, columns of features, target and columns for splits, nodes sorted by graph.

    Args:
        table: The table of nodes.
        options: What the user says about its columns.
        has_graph_table: Whether targets and columns for splits are in another table.
    """
    id_column, notes = find_id(options.id, table.names, table.label)
    named = {} if has_graph_table else options.for_splits
    targets = [] if has_graph_table else options.targets
    for role, name in named.items():
        check_columns(role, [name], table.names, table.label)
    check_columns("target_column", targets, table.names, table.label)
    if options.graph is not None:
        check_columns("graph", [options.graph], table.names, table.label)
    taken = [id_column, *targets, *named.values(), *([options.graph] if options.graph else [])]
    told = [*options.targets, *options.for_splits.values()]
    answers = [name for name in told if has_graph_table and name in table.names]
    if options.for_prediction:  # which splits nothing; nor are they features
        taken += [n for n in (options.groups, options.time, options.split) if n in table.names]
    if answers:
        # Left in, the target of a graph would be a feature of its nodes.
        names = ", ".join(map(repr, answers))
        notes.append(f"{table.label}: {names} left out; the table of graphs has the target")
        taken += answers
    if id_column in targets:
        raise GraphInputError(
            f"{table.label}: column {id_column!r} is the target and the id; name another: id='…'"
        )
    columns = _feature_columns(table, taken, options, notes)
    wanted = list(dict.fromkeys([*taken, *columns]))
    named_ids = {id_column, *([options.graph] if options.graph else [])}
    data = read_columns(table, wanted, named_ids, options.categories)
    if not data.num_rows:
        raise GraphInputError(f"{table.label} has a header and no rows; give at least one node")
    ids = tidy_ids(data.column(id_column), f"{table.label}, column {id_column!r}", table.place)
    graph = graph_ids = None
    place = table.place
    if options.graph is not None:
        what = f"{table.label}, column {options.graph!r}"
        data, ids, graph, graph_ids, order = _sorted_by_graph(data, ids, options.graph, what, place)
        check_unique(ids, graph, table.label, lambda row: table.place(int(order[row])))
    else:
        check_unique(ids, None, f"{table.label}, column {id_column!r}", place)
    columns = _without_row_numbers(data, columns, notes, table.label)
    special = taken_columns(data, named, table, ids)
    target = target_columns(data, targets)
    return Nodes(
        table, id_column, ids, data.select(columns), target, special, graph, graph_ids, notes
    )


def read_columns(
    table: Table, columns: Sequence[str], ids: Collection[str], categories: Collection[str]
) -> pa.Table:
    """The named columns, those of categories as text."""
    text = {name for name in columns if name in categories and name not in ids}
    data = table.read(columns, ids, text)
    for name in text:
        data = data.set_column(data.column_names.index(name), name, as_text(data.column(name)))
    return data


def taken_columns(
    data: pa.Table, named: Mapping[str, str], table: Table, ids: pa.Array
) -> dict[str, pa.Array | None]:
    """The columns for splits, by what they are for."""
    special: dict[str, pa.Array | None] = dict.fromkeys(("groups", "time", "split"))
    special |= {role: plain_array(data.column(name)) for role, name in named.items()}
    if special["split"] is not None:
        special["split"] = _tidy_split(special["split"], named["split"], table, ids)
    if special["time"] is not None:
        special["time"] = _tidy_time(special["time"], named["time"], table)
    return special


def target_columns(data: pa.Table, targets: Sequence[str]) -> pa.Table | None:
    """The target with null where it is unknown."""
    if not targets:
        return None
    return pa.table([unknown_as_null(plain_array(data.column(n))) for n in targets], [*targets])


def _feature_columns(
    table: Table, taken: Sequence[str], options: TableOptions, notes: list[str]
) -> list[str]:
    """The columns that may become features."""
    if options.features is not None:
        check_columns("features", options.features, table.names, table.label)
        both = [name for name in options.features if name in options.targets]
        if both:
            raise GraphInputError(f"{table.label}: {both[0]!r} is a feature and the target")
        chosen = list(options.features)
        rest = [name for name in table.names if name not in {*chosen, *taken}]
    else:
        rest = [name for name in options.ignore if name in table.names and name not in taken]
        out = {*taken, *rest}
        chosen = [name for name in table.names if name not in out]
    if rest:
        shown = ", ".join(map(repr, rest[:5])) + (", …" if rest[5:] else "")
        notes.append(f"{table.label}: {len(rest):,} column(s) left out as asked: {shown}")
    return chosen


def _without_row_numbers(
    data: pa.Table, columns: Sequence[str], notes: list[str], label: str
) -> list[str]:
    """Without columns that have no name and count the rows, as data frames write them."""
    kept = []
    for name in columns:
        column = data.column(name)
        if name.startswith("__index_level_"):  # pandas' name for an index without one
            notes.append(f"{label}: the index of the data frame is left out; name it to have it")
            continue
        if name.startswith("unnamed_") and pa.types.is_integer(column.type):
            values = np.sort(column.to_numpy())
            if np.array_equal(values - values[0], np.arange(len(values))):
                notes.append(f"{label}: a column without a name that counts the rows is left out")
                continue
        kept.append(name)
    return kept


def _sorted_by_graph(
    data: pa.Table, ids: pa.Array, column: str, what: str, place: Any
) -> tuple[pa.Table, pa.Array, Integers, pa.Array, Integers]:
    """Nodes of one graph beside one another, graphs in the order of their first node."""
    names = tidy_ids(data.column(column), what, place)
    encoded = names.dictionary_encode()
    graph = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.argsort(graph, kind="stable")
    if not np.array_equal(order, np.arange(len(order))):
        data, ids, graph = data.take(order), ids.take(pa.array(order)), graph[order]
    return data, ids, graph, encoded.dictionary, order


def _tidy_time(column: pa.Array, name: str, table: Table) -> pa.Array:
    """Numbers, dates or times; text where all of it is ISO 8601, which would not sort as text."""
    kind = column.type
    if is_number(kind) or pa.types.is_temporal(kind) or pa.types.is_null(kind):
        return unknown_as_null(column)
    if pa.types.is_string(kind):
        for zone in (None, "UTC"):
            try:
                return column.cast(pa.timestamp("us", zone))
            except pa.ArrowInvalid:
                continue
    value = next((v.as_py() for v in column if v.is_valid), None)
    raise GraphInputError(
        f"{table.label}: the times in column {name!r} have the type {kind}, such as "
        f"{shortened(value)}, which has no order in time; write them as numbers or as "
        "2024-01-31 or 2024-01-31 13:45:00"
    )


def _tidy_split(column: pa.Array, name: str, table: Table, ids: pa.Array) -> pa.Array:
    """The parts as "train", "valid" and "test"."""
    values = column.cast(pa.string()).to_pylist()
    parts = [None if value is None else SPLITS.get(value.strip().lower()) for value in values]
    for row, (value, part) in enumerate(zip(values, parts, strict=True)):
        if value is not None and part is None:
            raise GraphInputError(
                f"{table.label}: column {name!r} says {shortened(value)} for "
                f"{shortened(ids[row].as_py())}; a split has train, valid and test"
            )
    return pa.array(parts, pa.string())
