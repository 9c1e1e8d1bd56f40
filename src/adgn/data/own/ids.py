"""Ids of nodes, and edges joined to nodes by them."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adgn._util.names import shortened
from adgn.data.own.arrow import plain_array
from adgn.data.root import GraphInputError

Integers = NDArray[np.int64]
Place = Callable[[int], str]
_SHOWN = 3


def tidy_ids(column: pa.ChunkedArray, what: str, place: Place) -> pa.Array:
    """Ids as int64 or strings, none missing.

    Text that is whole numbers as they are usually written becomes int64: `7`, but not `007`.

    Args:
        column: As it was read.
        what: The table and column, for messages.
        place: What a user calls a row.
    """
    ids = plain_array(column)
    if ids.null_count:
        rows = np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False))
        raise GraphInputError(
            f"{what}: the id is missing in {len(rows):,} row(s), first at {place(int(rows[0]))}; "
            "fill it in or remove the row"
        )
    if pa.types.is_integer(ids.type):
        small = not pa.types.is_uint64(ids.type) or (pc.max(ids).as_py() or 0) < 2**63
        return ids.cast(pa.int64() if small else pa.string())
    if pa.types.is_floating(ids.type):
        whole = ids.to_numpy(zero_copy_only=False)
        if not (np.isfinite(whole).all() and (whole == np.round(whole)).all()):
            raise GraphInputError(
                f"{what} has numbers that are not whole; ids are names: text or whole numbers"
            )
        return ids.cast(pa.int64())
    if pa.types.is_boolean(ids.type) or not pa.types.is_string(ids.type):
        return ids.cast(pa.string())
    return _numbers_if_canonical(ids)


def _numbers_if_canonical(ids: pa.Array) -> pa.Array:
    if not len(ids) or not pc.all(pc.match_substring_regex(ids, r"^(0|-?[1-9]\d{0,17})$")).as_py():
        return ids
    return ids.cast(pa.int64())


def like_ids(ends: pa.Array, ids: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Ends of edges and ids of nodes in one type, text where either is text."""
    if ends.type == ids.type:
        return ends, ids
    return ends.cast(pa.string()), ids.cast(pa.string())


def check_unique(ids: pa.Array, graph: Integers | None, what: str, place: Place) -> None:
    """Raises where two nodes, of the same graph, have the same id."""
    codes = ids.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if graph is not None:
        codes = graph * np.int64(len(ids)) + codes
    ordered = np.sort(codes)
    if not (ordered[1:] == ordered[:-1]).any():
        return
    _, first, group = np.unique(codes, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[group] != np.arange(len(codes)))
    shown = "; ".join(
        f"{shortened(ids[int(row)].as_py())} at {place(int(first[group[row]]))} and "
        f"{place(int(row))}"
        for row in again[:_SHOWN]
    )
    where = "" if graph is None else " within a graph"
    raise GraphInputError(
        f"{what}: {len(again):,} row(s) repeat an id of an earlier row{where}: {shown}"
        f"{'; …' if len(again) > _SHOWN else ''}. Remove the duplicates, or name another column: "
        "id='…'"
    )


def check_known(found: Integers, ends: pa.Array, what: str, nodes: str, place: Place) -> None:
    """Raises where an end of an edge is not the id of a node: its position is −1."""
    unknown = np.flatnonzero(found < 0)
    if not len(unknown):
        return
    shown = "; ".join(
        f"{shortened(ends[int(row)].as_py())} at {place(int(row))}" for row in unknown[:_SHOWN]
    )
    raise GraphInputError(
        f"{what}: {len(unknown):,} edge(s) name a node that {nodes} does not have: {shown}"
        f"{'; …' if len(unknown) > _SHOWN else ''}. Add these nodes to {nodes}, or remove the edges"
    )


def positions(values: pa.Array, ids: pa.Array) -> Integers:
    """Where each value is among the ids, −1 where it is not."""
    if pa.types.is_int64(ids.type) and np.array_equal(ids.to_numpy(), np.arange(len(ids))):
        given = values.to_numpy()
        return np.where((given >= 0) & (given < len(ids)), given, -1)
    found = pc.index_in(values, value_set=ids).fill_null(-1)
    result: Integers = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return result
