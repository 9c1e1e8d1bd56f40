"""Arrow arrays in the few forms that the rest works with."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adgn.data.root import GraphInputError


def plain_array(column: Any) -> pa.Array:
    """One Arrow array without chunks, dictionaries or views of strings."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column, pa.ChunkedArray):  # more than one array can hold
        raise GraphInputError("a column is too large for one Arrow array; use shorter strings")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.string())
    return column


def unknown_as_null(column: pa.Array) -> pa.Array:
    """NaN, which other libraries write for an unknown number, as null."""
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), None, column)
    return column
