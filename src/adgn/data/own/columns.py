"""What becomes of one column: the decision, and the numbers that follow from it."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adgn._util.names import shortened
from adgn.data.root import GraphInputError

Kind = Literal["number", "0/1", "category", "vector", "sparse number", "left out"]

MOST_CATEGORIES = 100  # that have a feature of their own
ID_LIKE = 0.9  # the share of different values from which on text is taken for a name of the row
LONG_TEXT = 40  # letters on average, in several words
LOOKED_AT = 2000  # values of a column whose form is looked at
_DATE = re.compile(r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})\b.*")
_LEADING_ZERO = re.compile(r"[-+]?0\d+")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")


class UnusableColumnError(GraphInputError):
    """A column can be no feature; the message is the reason and the remedy."""


@dataclass(frozen=True)
class ColumnPlan:
    """What is done with a column.

    Args:
        name: The column.
        kind: `"number"`: `(v − mean) / scale`. `"vector"`: a list of numbers per row, each so.
            `"0/1"`: as it is. `"sparse number"`: mostly zeros, divided by `scale`.
            `"category"`: one feature per category. `"left out"`: no feature.
        features: The names of its features.
        mean: Of each feature, over the rows that it was fitted on.
        scale: The standard deviation of each feature there, or another divisor.
        categories: Those with a feature of their own.
        other: Whether one more feature says "another category".
        missing: Whether the last feature says where a value is missing.
        missing_rows: How many were missing where it was fitted.
        note: What is worth saying.
    """

    name: str
    kind: Kind
    features: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    categories: tuple[str, ...] = ()
    other: bool = False
    missing: bool = False
    missing_rows: int = 0
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """All of it in types that JSON has, without what is empty."""
        return {key: value for key, value in asdict(self).items() if value or key == "kind"}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "ColumnPlan":
        """What `to_json` gave."""
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list | tuple) else value
            for key, value in content.items()
        }
        return cls(**values)


@dataclass(frozen=True)
class Block:
    """The features of one column: a dense `[n, F]` array, or the entries that are not zero."""

    dense: NDArray[np.float32] | None = None
    rows: NDArray[np.int64] | None = None
    columns: NDArray[np.int64] | None = None
    values: NDArray[np.float32] | None = None


def plan_column(
    name: str, column: pa.ChunkedArray, rows: NDArray[np.int64] | None, *, of_edges: bool = False
) -> ColumnPlan:
    """Decides what becomes of a column.

    Args:
        name: Its name.
        column: Its values in all rows.
        rows: The rows whose values may be looked at; `None`: all.
        of_edges: Whether it is a column of edges, by which nothing is split.

    Raises:
        UnusableColumnError: It has dates, long text or values of a type that is no number, text
            or truth value.
    """
    kind = column.type
    if rows is not None:
        column = column.take(pa.array(rows))
    if pa.types.is_null(kind) or column.null_count == len(column):
        return ColumnPlan(name, "left out", note="no value is known")
    if pa.types.is_temporal(kind):
        raise UnusableColumnError(_date_advice(name, column, of_edges))
    if is_number(kind) or pa.types.is_boolean(kind):
        return _plan_numbers(name, column)
    if is_list(kind):
        return _plan_vector(name, column)
    if is_text(kind):
        return _plan_text(name, as_text(column), of_edges)
    raise UnusableColumnError(
        f"column {name!r} has values of the type {kind}, which are no feature; turn them into "
        f"numbers or text, or leave the column out: ignore=[{name!r}]"
    )


def encode_column(plan: ColumnPlan, column: pa.ChunkedArray) -> tuple[Block, tuple[str, ...]]:
    """The features of a column, by a plan that was made before; and what there is to say.

    Raises:
        GraphInputError: The column has another type than the plan is for.
    """
    kind = column.type
    if plan.kind == "category":
        whole = pa.types.is_floating(kind) and _all_whole(column)
        if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind) or whole):
            raise _other_type(plan, "text", column)
        named = [c for c in plan.categories if _LEADING_ZERO.fullmatch(c)]
        if named and not is_text(kind) and not pa.types.is_null(kind):
            raise GraphInputError(
                f"column {plan.name!r} was read as numbers, and the model was trained with names "
                f"such as {named[0]!r} in it, which are lost in numbers; read it as text: "
                f"categories=[{plan.name!r}]"
            )
        return _encode_categories(plan, as_text(column))
    if plan.kind == "vector":
        if not is_list(kind):
            raise _other_type(plan, "lists of numbers", column)
        return _encode_numbers(plan, _vectors(plan.name, column))
    if not (is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise _other_type(plan, "numbers", column)
    return _encode_numbers(plan, as_numbers(plan.name, column)[:, None])


def is_number(kind: pa.DataType) -> bool:
    """Whether values of an Arrow type are numbers."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether values of an Arrow type are lists of numbers."""
    types = pa.types
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(lists and is_number(kind.value_type))


def is_text(kind: pa.DataType) -> bool:
    """Whether values of an Arrow type are text, or categories of any type."""
    types = pa.types
    if types.is_dictionary(kind):
        return True
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as strings; whole numbers that became real ones as whole numbers: 7, not 7.0."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type) and _all_whole(column):
        column = pc.if_else(pc.is_nan(column), None, column).cast(pa.int64())
    return column.cast(pa.string())


def _all_whole(column: pa.ChunkedArray) -> bool:
    numbers = column.drop_null().to_numpy()
    numbers = numbers[~np.isnan(numbers)]
    return bool(np.isfinite(numbers).all() and (numbers == np.round(numbers)).all())


def as_numbers(name: str, column: pa.ChunkedArray) -> NDArray[np.float64]:
    """A column as float64 with NaN where a value is missing; infinities are refused."""
    # not safe: whole numbers above 2⁵³ are rounded, which is no error here
    numbers: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy()
    if np.isinf(numbers).any():
        row = int(np.flatnonzero(np.isinf(numbers))[0])
        raise GraphInputError(
            f"column {name!r} is infinite at row {row:,} (from 0); correct it or empty this cell"
        )
    return numbers


def _plan_numbers(name: str, column: pa.ChunkedArray) -> ColumnPlan:
    numbers = as_numbers(name, column)
    known = numbers[~np.isnan(numbers)]
    missing = len(numbers) - len(known)
    if not len(known):
        return ColumnPlan(name, "left out", note="no value is known", missing_rows=missing)
    low, high = known.min(), known.max()
    features = (name, f"{name}: missing") if missing else (name,)
    plan = ColumnPlan(name, "number", features, missing=bool(missing), missing_rows=missing)
    if low == high:
        if missing:  # known or not is all that it tells
            return replace(
                plan, features=features[1:], mean=(), note=f"always {low:g} where it is known"
            )
        return ColumnPlan(name, "left out", note=f"always {low:g}")
    if low == 0 and high == 1 and bool(((known == 0) | (known == 1)).all()):
        return replace(plan, kind="0/1", mean=(0.0,), scale=(1.0,))
    note = ""
    if pa.types.is_integer(column.type) and len(known) > 20:
        if len(np.unique(known)) == len(known):
            note = f"all values differ; if it names the rows: ignore=[{name!r}]"
        elif len(np.unique(known)) <= 10:
            note = f"few values; if they are codes of categories: categories=[{name!r}]"
    return replace(plan, mean=(float(known.mean()),), scale=(float(known.std()),), note=note)


def _plan_vector(name: str, column: pa.ChunkedArray) -> ColumnPlan:
    numbers = _vectors(name, column)
    known = numbers[~np.isnan(numbers).any(axis=1)]
    missing = len(numbers) - len(known)
    if not len(known):
        return ColumnPlan(name, "left out", note="no value is known", missing_rows=missing)
    mean, scale = known.mean(axis=0), known.std(axis=0)
    constant = int((scale == 0).sum())
    features = [f"{name}[{position}]" for position in range(numbers.shape[1])]
    return ColumnPlan(
        name,
        "vector",
        (*features, *([f"{name}: missing"] if missing else [])),
        mean=tuple(mean.tolist()),
        scale=tuple(np.where(scale == 0, 1.0, scale).tolist()),
        missing=bool(missing),
        missing_rows=missing,
        note=f"{constant:,} of its entries never change" if constant else "",
    )


def _vectors(name: str, column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Lists of numbers as `[n, length]`, NaN in the rows without a list."""
    lengths = pc.list_value_length(column).drop_null().unique().to_pylist()
    if len(lengths) > 1:
        raise UnusableColumnError(
            f"column {name!r} has lists of {min(lengths)} to {max(lengths)} numbers; give lists of "
            f"one length, or leave the column out: ignore=[{name!r}]"
        )
    width = lengths[0] if lengths else 0
    known = column.is_valid().to_numpy()
    numbers = np.full((len(column), width), np.nan)
    numbers[known] = as_numbers(name, pc.list_flatten(column)).reshape(-1, width)
    return numbers


def _encode_numbers(
    plan: ColumnPlan, numbers: NDArray[np.float64]
) -> tuple[Block, tuple[str, ...]]:
    width = len(plan.mean)
    if width and numbers.shape[1] != width:
        raise GraphInputError(
            f"column {plan.name!r} has lists of {numbers.shape[1]} numbers; the model was trained "
            f"with lists of {width}"
        )
    unknown = np.isnan(numbers).any(axis=1)
    notes: tuple[str, ...] = ()
    if unknown.any() and not plan.missing:
        notes = (
            f"column {plan.name!r}: {int(unknown.sum()):,} missing value(s), of which the model "
            "has seen none; the mean stands for them",
        )
    dense = np.zeros((len(numbers), len(plan.features)), dtype=np.float32)
    if width:
        scaled = (numbers - np.array(plan.mean)) / np.array(plan.scale)
        scaled[unknown] = 0
        dense[:, :width] = scaled
    if plan.missing:
        dense[:, -1] = unknown
    if plan.kind in ("0/1", "sparse number"):
        rows, columns = dense.nonzero()
        return Block(rows=rows, columns=columns, values=dense[rows, columns]), notes
    return Block(dense=dense), notes


def _plan_text(name: str, column: pa.ChunkedArray, of_edges: bool) -> ColumnPlan:
    known = column.drop_null()
    _check_form(name, known, of_edges)
    missing = len(column) - len(known)
    counts = known.value_counts()
    values = counts.field("values").to_numpy(zero_copy_only=False).astype(str)
    number = counts.field("counts").to_numpy()
    distinct = len(values)
    if distinct > 1 and distinct > ID_LIKE * len(known):
        return ColumnPlan(
            name,
            "left out",
            missing_rows=missing,
            note=f"{distinct:,} different values in {len(known):,} rows: it names the rows",
        )
    order = np.lexsort((values, -number))
    rare_below = max(2, min(5, len(column) // 50))
    kept = [int(place) for place in order[:MOST_CATEGORIES] if number[place] >= rare_below]
    others = distinct - len(kept)
    if others == 1 and len(kept) < MOST_CATEGORIES:  # its own name says more than "other"
        kept, others = [int(place) for place in order], 0
    in_others = int(number.sum() - number[kept].sum())
    if len(kept) + bool(others) + bool(missing) < 2:
        what = f"always {str(values[0])!r}" if distinct == 1 else "every category is rare"
        return ColumnPlan(name, "left out", missing_rows=missing, note=what)
    categories = tuple(str(values[place]) for place in kept)
    features = [f"{name}={category}" for category in categories]
    features += [f"{name}: other"] if others else []
    features += [f"{name}: missing"] if missing else []
    note = ""
    if others:
        note = (
            f"{others:,} of {distinct:,} categories, with {in_others:,} of {len(known):,} rows, "
            "are rare and share one feature"
        )
    return ColumnPlan(
        name,
        "category",
        tuple(features),
        categories=categories,
        other=bool(others),
        missing=bool(missing),
        missing_rows=missing,
        note=note,
    )


def _check_form(name: str, known: pa.ChunkedArray, of_edges: bool) -> None:
    """Raises for text that is no category: dates, sentences, numbers with a comma."""
    looked_at = [text for text in known[:LOOKED_AT].to_pylist() if text.strip()]
    if not looked_at:
        return
    if sum(bool(_DATE.fullmatch(text)) for text in looked_at) > 0.9 * len(looked_at):
        raise UnusableColumnError(_date_advice(name, known, of_edges))
    if sum(bool(_DECIMAL_COMMA.fullmatch(text)) for text in looked_at) > 0.9 * len(looked_at):
        raise UnusableColumnError(
            f"column {name!r} has numbers with a comma, such as {looked_at[0]!r}; say so with "
            f"decimal=',', or leave the column out: ignore=[{name!r}]"
        )
    letters = sum(map(len, looked_at)) / len(looked_at)
    words = sum(len(text.split()) for text in looked_at) / len(looked_at)
    if letters > LONG_TEXT and words > 4:
        raise UnusableColumnError(
            f"column {name!r} has text of {letters:.0f} letters on average, such as "
            f"{shortened(looked_at[0], 40)}; turn it into numbers first (an embedding, as a column "
            f"of lists), or leave the column out: ignore=[{name!r}]"
        )


def _date_advice(name: str, column: pa.ChunkedArray, of_edges: bool) -> str:
    value = column.drop_null()[0]
    split = "" if of_edges else f", split by them (time={name!r})"
    return (
        f"column {name!r} has dates or times, such as {value}; turn them into a number that means "
        f"the same in new data (an age in days){split}, or leave the column out: "
        f"ignore=[{name!r}]"
    )


def _encode_categories(plan: ColumnPlan, column: pa.ChunkedArray) -> tuple[Block, tuple[str, ...]]:
    known = column.is_valid().to_numpy()
    places = pc.index_in(column, value_set=pa.array(plan.categories, pa.string()))
    codes = places.fill_null(-1).to_numpy().astype(np.int64)
    codes[~known] = len(plan.features) - 1 if plan.missing else -1
    notes = []
    strange = known & (codes < 0)
    if plan.other:
        codes[strange] = len(plan.categories)
    elif strange.any():
        first = column[int(np.flatnonzero(strange)[0])].as_py()
        notes.append(
            f"column {plan.name!r}: {int(strange.sum()):,} row(s) with a category that the model "
            f"has never seen, such as {shortened(first)}; they have none of its features"
        )
    if not plan.missing and not known.all():
        notes.append(
            f"column {plan.name!r}: {int((~known).sum()):,} missing value(s), of which the model "
            "has seen none; they have none of its features"
        )
    rows = np.flatnonzero(codes >= 0)
    ones = np.ones(len(rows), dtype=np.float32)
    return Block(rows=rows, columns=codes[rows], values=ones), tuple(notes)


def _other_type(plan: ColumnPlan, expected: str, column: pa.ChunkedArray) -> GraphInputError:
    value = next((v.as_py() for v in column if v.is_valid), None)
    return GraphInputError(
        f"column {plan.name!r} has values of the type {column.type}, such as {shortened(value)}; "
        f"the model was trained with {expected} in it: give the same column as in training"
    )
