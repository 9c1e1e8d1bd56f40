"""CSV and TSV files: their header looked at first, then read with types that are known."""

import csv
import io
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from adgn._util.names import shortened
from adgn.data.root import GraphInputError

TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt")
_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar", " ": "a space"}
_LARGEST_BLOCK = 1 << 30  # types are inferred from one block; so far the whole file is one
_HEADER_BYTES = 1 << 20
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")


@dataclass(frozen=True)
class TextFormat:
    """How text files are written.

    Args:
        delimiter: What separates columns; by default a comma, a tab in .tsv and .tab files.
        encoding: Such as `"utf-8"`, `"latin-1"` or `"utf-16"`.
        decimal: What separates a number from its fraction.
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."

    def __post_init__(self) -> None:
        """A tab may be written as it is typed on a command line."""
        if self.delimiter in ("\\t", "tab"):
            object.__setattr__(self, "delimiter", "\t")
        for name in ("delimiter", "decimal"):
            sign = getattr(self, name)
            if sign is not None and len(sign) != 1:
                raise GraphInputError(f"{name}={sign!r} is not one sign; give one, such as ';'")


class TextFile:
    """A CSV or TSV file with a header.

    Empty cells and `NA`, `N/A`, `NaN`, `null` and their like are missing values. Whole columns are
    looked at to find their type.
    """

    def __init__(self, path: Path, form: TextFormat) -> None:
        self.path, self.form, self.label = path, form, path.name
        suffix = path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]
        tabs = suffix[0].lower() in (".tsv", ".tab")
        self.delimiter = form.delimiter or ("\t" if tabs else ",")
        first = self._first_line()
        self.names = self._header(first)

    def read(
        self, columns: Sequence[str], ids: Collection[str] = (), text: Collection[str] = ()
    ) -> pa.Table:
        """The named columns; those in `ids` and `text` as they are written, not as numbers."""
        types = {name: pa.string() for name in (*ids, *text)}
        table = self._read(columns, types, None)
        hidden = [name for name in columns if name in ids and table.column(name).null_count]
        if hidden:  # an id may well be "NA"
            again = self._read(hidden, types, [""])
            for name in hidden:
                table = table.set_column(table.column_names.index(name), name, again.column(name))
        for name in columns:
            if pa.types.is_binary(table.column(name).type):
                raise self._wrong_encoding(f"column {name!r}")
        return table

    def place(self, row: int) -> str:
        """The line of the file, if no cell has several lines."""
        return f"line {row + 2:,}"

    def _read(
        self, columns: Sequence[str], types: dict[str, Any], null_values: list[str] | None
    ) -> pa.Table:
        size = self.path.stat().st_size
        reading = pa.csv.ReadOptions(
            column_names=self.names,
            skip_rows=1,
            encoding=self.form.encoding,
            block_size=min(max(size + 1, 1 << 20), _LARGEST_BLOCK),
        )
        options = (
            pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            pa.csv.ConvertOptions(
                include_columns=list(columns),
                column_types=types,
                strings_can_be_null=True,
                decimal_point=self.form.decimal,
                null_values=null_values,
            ),
        )
        try:
            try:
                return pa.csv.read_csv(str(self.path), reading, *options)
            except pa.ArrowInvalid:  # once more, for an error that names the row
                reading.use_threads = False
                return pa.csv.read_csv(str(self.path), reading, *options)
        except pa.ArrowInvalid as error:
            raise self._explained(str(error)) from None
        except UnicodeError as error:
            raise self._wrong_encoding(str(error)) from None

    def _first_line(self) -> str:
        """The header, whatever compression the file has."""
        try:
            with pa.input_stream(str(self.path), compression="detect") as stream:
                start: bytes = stream.read(_HEADER_BYTES)
        except (pa.ArrowException, OSError) as error:
            raise GraphInputError(f"{self.label} cannot be read: {error}") from None
        if start[:2] in (b"\xff\xfe", b"\xfe\xff") and self.form.encoding == "utf-8":
            raise GraphInputError(
                f"{self.label} is not written in UTF-8 but, as its first bytes say, in UTF-16; "
                "give encoding='utf-16'"
            )
        if b"\0" in start and "16" not in self.form.encoding and "32" not in self.form.encoding:
            raise GraphInputError(f"{self.label} is not a text file: it has zero bytes")
        try:
            text = start.decode(self.form.encoding, errors="strict")
        except LookupError:
            raise GraphInputError(
                f"encoding={self.form.encoding!r} is not known; try 'utf-8' or 'latin-1'"
            ) from None
        except UnicodeDecodeError as error:
            if error.end < len(start) - 4:  # not just cut inside of a character
                number = start.count(b"\n", 0, error.start) + 1
                raise self._wrong_encoding(f"line {number:,}") from None
            text = start[: error.start].decode(self.form.encoding)
        line = text.lstrip("\ufeff").splitlines()[0] if text.strip() else ""
        if not line.strip():
            raise GraphInputError(f"{self.label} has no header: its first line is empty")
        return line

    def _header(self, line: str) -> list[str]:
        names = next(csv.reader(io.StringIO(line), delimiter=self.delimiter))
        names = [name.strip() for name in names]
        if all(_NUMBER.fullmatch(name) for name in names):
            raise GraphInputError(
                f"{self.label} has no header: its first line is {shortened(line)}; write the names "
                "of the columns there"
            )
        return [name or f"unnamed_{place + 1}" for place, name in enumerate(names)]

    def other_delimiter(self) -> str | None:
        """What separates the columns, where the header is one column to this reader."""
        if len(self.names) > 1:
            return None
        found = [sign for sign in _DELIMITERS if sign in self.names[0]]
        return found[0] if found else None

    def wrong_delimiter(self, delimiter: str) -> GraphInputError:
        """The error for a file whose columns are separated by something else."""
        used = _DELIMITERS.get(self.delimiter, repr(self.delimiter))
        return GraphInputError(
            f"{self.label} has one column where {used} separates columns; its first line is "
            f"{shortened(self.names[0])}. It looks as if {_DELIMITERS[delimiter]} separated them: "
            f"give delimiter={delimiter!r}"
        )

    def _explained(self, message: str) -> GraphInputError:
        if "UTF8" in message:
            return self._wrong_encoding("a cell")
        if match := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+): ?(.*)", message):
            row, expected, got, text = match.groups()
            return GraphInputError(
                f"{self.label}: line {row} has {got} columns, the header has {expected}: "
                f"{shortened(text)}. Put quotes around cells with the delimiter "
                f"{self.delimiter!r}, or name another: delimiter='…'"
            )
        if "Empty CSV" in message:
            return GraphInputError(f"{self.label} is empty")
        return GraphInputError(f"{self.label} cannot be read: {message}")

    def _wrong_encoding(self, where: str) -> GraphInputError:
        return GraphInputError(
            f"{self.label} is not written in {self.form.encoding.upper()}: {where} has other "
            "bytes. Give the right encoding, often encoding='latin-1', or save it as UTF-8"
        )
