"""Tables of the user: files, and objects of other libraries that speak Arrow."""

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from adgn._util.environment import NotEnoughMemoryError, check_memory
from adgn._util.names import shortened
from adgn.data.own.textfiles import TEXT_ENDINGS, TextFile, TextFormat
from adgn.data.root import GraphInputError

PARQUET = (".parquet", ".pq")
FEATHER = (".feather", ".arrow", ".ipc")
# What a table takes in memory while it is read and turned into a graph, in sizes of the file's
# contents.
MEMORY_PER_BYTE = 2.0


class Table(Protocol):
    """A table that was looked at, but not read yet.

    Attributes:
        label: What messages call it.
        names: Its columns.
    """

    label: str
    names: list[str]

    def read(
        self, columns: Sequence[str], ids: Collection[str] = (), text: Collection[str] = ()
    ) -> pa.Table:
        """The named columns; those in `ids` and `text` as they are written, not as numbers.

        In `ids` only an empty cell is missing: an id may well be "NA".
        """

    def place(self, row: int) -> str:
        """What a user calls a row, counted from 0."""


def open_table(source: Any, argument: str, form: TextFormat) -> Table:
    """Looks at a table: a path to a CSV, TSV, Parquet or Feather file, or an object with columns.

    Objects are Arrow tables, whatever exports an Arrow stream (`__arrow_c_stream__`: pandas,
    polars, DuckDB) or the data frame interchange protocol (`__dataframe__`), and dictionaries of
    columns. None of these libraries is imported.

    Args:
        source: The path or the object.
        argument: Which argument it was given for, for messages.
        form: How text files are written.

    Raises:
        GraphInputError: There is no such file, it has no columns, or its kind is not known.

    Example:
        >>> table = open_table({"id": [1, 2], "age": [30.5, None]}, "nodes", TextFormat())
        >>> table.names
        ['id', 'age']
        >>> table.read(["age"]).to_pydict()
        {'age': [30.5, None]}
    """
    if isinstance(source, MemoryTable):
        return source
    if isinstance(source, str | os.PathLike):
        table = _open_file(Path(source), argument, form)
    else:
        table = MemoryTable(argument, _arrow_table(source, argument))
    if not table.names:
        raise GraphInputError(f"{table.label} has no columns")
    twice = [name for name, number in Counter(table.names).items() if number > 1]
    if twice:
        raise GraphInputError(
            f"{table.label} has more than one column named {twice[0]!r}; rename them"
        )
    return table


@dataclass
class MemoryTable:
    """A table that is in memory."""

    label: str
    table: pa.Table

    def __post_init__(self) -> None:
        self.names = list(self.table.column_names)

    def read(
        self, columns: Sequence[str], ids: Collection[str] = (), text: Collection[str] = ()
    ) -> pa.Table:
        """The named columns."""
        return self.table.select(list(columns))

    def place(self, row: int) -> str:
        """The row as these libraries count it."""
        return f"row {row:,} (from 0)"


@dataclass
class ColumnFile:
    """A Parquet or Feather file."""

    path: Path

    def __post_init__(self) -> None:
        self.label = self.path.name
        if self.path.suffix.lower() in PARQUET:
            self.names = [str(name) for name in pa.parquet.read_schema(self.path).names]
        else:
            with pa.memory_map(str(self.path)) as file:
                self.names = list(pa.ipc.open_file(file).schema.names)

    def read(
        self, columns: Sequence[str], ids: Collection[str] = (), text: Collection[str] = ()
    ) -> pa.Table:
        """The named columns."""
        if self.path.suffix.lower() in PARQUET:
            self._check_memory(columns)
            return pa.parquet.read_table(self.path, columns=list(columns))
        check_table_memory(self.path.stat().st_size, self.label)
        return pa.feather.read_table(self.path, columns=list(columns))

    def place(self, row: int) -> str:
        """The row as these files count it."""
        return f"row {row:,} (from 0)"

    def _check_memory(self, columns: Sequence[str]) -> None:
        metadata = pa.parquet.read_metadata(self.path)
        wanted = set(columns)
        size = 0
        for group in range(metadata.num_row_groups):
            parts = metadata.row_group(group)
            for place in range(parts.num_columns):
                part = parts.column(place)
                if part.path_in_schema.split(".")[0] in wanted:
                    # Compression hides repetition; in memory a value takes 8 bytes all the same.
                    size += max(part.total_uncompressed_size, 8 * part.num_values)
        check_table_memory(size, self.label)


def check_table_memory(size: float, label: str) -> None:
    """Raises where a table would not fit into memory, with what can be done about it."""
    try:
        check_memory(MEMORY_PER_BYTE * size, f"reading {label}")
    except NotEnoughMemoryError as error:
        raise NotEnoughMemoryError(
            f"{error}. Leave out columns that are not needed (features=[…] names those that are), "
            "or take a part of the graph"
        ) from None


def _open_file(path: Path, argument: str, form: TextFormat) -> Table:
    if not path.exists():
        raise GraphInputError(f"{argument}={str(path)!r}: there is no such file")
    if path.is_dir():
        raise GraphInputError(
            f"{argument}={str(path)!r} is a folder; give a file, or read the folder with "
            "Graph.from_folder"
        )
    if not path.is_file():
        raise GraphInputError(f"{argument}={str(path)!r} is not a plain file")
    if path.stat().st_size == 0:
        raise GraphInputError(f"{argument}={str(path)!r} is empty: it has no header and no rows")
    if path.suffix.lower() in (*PARQUET, *FEATHER):
        try:
            return ColumnFile(path)
        except (pa.ArrowException, OSError) as error:
            raise GraphInputError(
                f"{argument}={str(path)!r} cannot be read as its ending says ({error}); write it "
                "again, or give it the right ending"
            ) from None
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    if suffixes[-1:] and suffixes[-1] in TEXT_ENDINGS:
        check_table_memory(path.stat().st_size, path.name)
        return TextFile(path, form)
    endings = ", ".join((*TEXT_ENDINGS, *PARQUET, *FEATHER))
    raise GraphInputError(
        f"{argument}={str(path)!r} has an ending that is not known; tables end in {endings}"
    )


def _arrow_table(source: Any, argument: str) -> pa.Table:
    try:
        if isinstance(source, pa.Table):
            table = source
        elif isinstance(source, Mapping):
            table = pa.table({str(name): _column(values) for name, values in source.items()})
        elif hasattr(source, "__arrow_c_stream__"):
            table = pa.table(source)
        elif hasattr(source, "__dataframe__"):
            from pyarrow.interchange import from_dataframe

            table = from_dataframe(source)
        else:
            raise GraphInputError(
                f"{argument} is {_article(type(source).__name__)}; give a path, a table that "
                "speaks Arrow (pandas, polars, pyarrow, DuckDB), or a dictionary of columns"
            )
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise GraphInputError(
            f"{argument} cannot be read as a table: {error}. Give each column values of one type"
        ) from None
    return table.rename_columns([str(name) for name in table.column_names])


def _column(values: Any) -> Any:
    return pa.array(values, from_pandas=True) if not hasattr(values, "__arrow_array__") else values


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {shortened(name)[1:-1]}"
