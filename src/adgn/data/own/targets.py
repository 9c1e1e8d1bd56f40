"""Targets as numbers that a loss takes, and predictions as values of the user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from adgn._util.names import shortened
from adgn.data.own.graph import Graph
from adgn.data.root import GraphInputError

TargetKind = Literal["classification", "regression"]
Label = str | int | bool

# Whole numbers with more different values than this are taken as quantities, not as classes.
MOST_CLASSES_OF_NUMBERS = 20


@dataclass(frozen=True)
class TargetEncoder:
    """How a target is turned into numbers and back.

    Classification: the position of the class in `classes`, −1 where it is unknown. Regression:
    `(y − mean) / scale` for each column, NaN where it is unknown.

    Args:
        kind: `"classification"` or `"regression"`.
        names: The target's columns.
        classes: The labels, sorted; for regression none.
        mean: Of each column over the rows that it was fitted on; for classification none.
        scale: The standard deviation of each column there.
        notes: What is worth saying about the target.

    Example:
        >>> graph = Graph.from_arrays([[0.0]] * 4, [[0], [1]], y=["cat", "dog", None, "cat"])
        >>> encoder = TargetEncoder.fit(graph)
        >>> encoder.encode(graph)
        tensor([ 0,  1, -1,  0])
        >>> encoder.decode([1, 0]).to_pylist()
        ['dog', 'cat']
        >>> TargetEncoder.from_json(encoder.to_json()) == encoder
        True
    """

    kind: TargetKind
    names: tuple[str, ...]
    classes: tuple[Label, ...] = ()
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def num_outputs(self) -> int:
        """The number of classes, or of columns to predict."""
        return len(self.classes) if self.kind == "classification" else len(self.names)

    @classmethod
    def fit(
        cls, graph: Graph, rows: Tensor | None = None, kind: TargetKind | None = None
    ) -> "TargetEncoder":
        """Learns classes, or mean and scale, of a graph's target.

        Args:
            graph: Its target has at least two classes or values.
            rows: Positions of the rows that mean and scale are of; all that are labelled by
                default. Classes are those of all labelled rows.
            kind: By default classes where the target is text, true or false, or whole numbers with
                at most 20 different values, and regression elsewhere.

        Raises:
            GraphInputError: There is no target, no known value, one class only, or the values do
                not fit `kind`.
        """
        if graph.target is None:
            raise GraphInputError(
                f"{graph.origin} has no target; name its column: target_column='…'"
            )
        table = graph.target
        known = graph.labelled
        if not len(known):
            raise GraphInputError(
                f"the target {_quoted(table.column_names)} of {graph.origin} is missing in all "
                f"{table.num_rows:,} rows; there is nothing to learn from"
            )
        chosen = _inferred_kind(table) if kind is None else kind
        if chosen == "classification":
            return _fit_classes(graph, table, known)
        if chosen == "regression":
            return _fit_numbers(graph, table, known if rows is None else rows)
        raise GraphInputError(f"kind={kind!r} is not 'classification' or 'regression'")

    def encode(self, graph: Graph) -> Tensor:
        """The target of a graph: `[rows]` class positions, or `[rows, columns]` numbers.

        A graph without a target is unknown in all rows.

        Raises:
            GraphInputError: It has other columns, or a label that is not among the classes.
        """
        if graph.target is None:
            if self.kind == "classification":
                return torch.full((graph.num_rows,), -1)
            return torch.full((graph.num_rows, len(self.names)), torch.nan)
        lacking = [name for name in self.names if name not in graph.target.column_names]
        if lacking:
            raise GraphInputError(
                f"{graph.origin} has the target {_quoted(graph.target.column_names)}; the model "
                f"predicts {_quoted(self.names)}"
            )
        columns = [graph.target.column(name).combine_chunks() for name in self.names]
        if self.kind == "classification":
            return self._encode_classes(columns[0], graph)
        numbers = np.stack(
            [_numbers(c, n, graph) for c, n in zip(columns, self.names, strict=True)]
        )
        scaled = (numbers.T - np.array(self.mean)) / np.array(self.scale)
        return torch.from_numpy(scaled.astype(np.float32))

    def decode(self, values: Any) -> pa.Array | np.ndarray[Any, Any]:
        """Class positions as labels, or scaled numbers in the unit of the target.

        Args:
            values: `[rows]` class positions, or `[rows, columns]` numbers.
        """
        array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
        if self.kind == "classification":
            return pa.array(self.classes).take(pa.array(array.astype(np.int64)))
        numbers = array.reshape(len(array), len(self.names)).astype(np.float64)
        result: np.ndarray[Any, Any] = numbers * np.array(self.scale) + np.array(self.mean)
        return result

    def with_classes_of(self, graph: Graph) -> "TargetEncoder":
        """The encoder with those classes of a graph that it does not know, after its own.

        Example:
            >>> graph = Graph.from_arrays([[0.0]] * 2, [[0], [1]], y=["cat", "cow"])
            >>> encoder = TargetEncoder("classification", ("y",), ("cat", "dog"))
            >>> encoder.with_classes_of(graph).classes
            ('cat', 'dog', 'cow')
        """
        if graph.target is None or not self.classes:
            return self
        column = graph.target.column(self.names[0]).combine_chunks()
        labels = _as_labels(column, isinstance(self.classes[0], str)).drop_null()
        if labels.type != pa.array(self.classes).type:
            return self
        new = [label for label in pc.unique(labels).to_pylist() if label not in self.classes]
        return replace(self, classes=(*self.classes, *new))

    def to_json(self) -> dict[str, Any]:
        """All of it in types that JSON has."""
        return {
            "kind": self.kind,
            "names": list(self.names),
            "classes": list(self.classes),
            "mean": list(self.mean),
            "scale": list(self.scale),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "TargetEncoder":
        """What `to_json` gave."""
        lists = {name: tuple(content[name]) for name in ("names", "classes", "mean", "scale")}
        return cls(kind=content["kind"], **lists, notes=tuple(content.get("notes", ())))

    def _encode_classes(self, column: pa.Array, graph: Graph) -> Tensor:
        if column.null_count == len(column):
            return torch.full((len(column),), -1)
        labels = _as_labels(column, isinstance(self.classes[0], str))
        labels, classes = _comparable(labels, pa.array(self.classes))
        positions = pc.index_in(labels, value_set=classes)
        strange = np.flatnonzero(pc.and_(labels.is_valid(), positions.is_null()).to_numpy(False))
        if len(strange):
            raise GraphInputError(
                f"the target {self.names[0]!r} of {graph.origin} has {len(strange):,} label(s) "
                f"that the model has never seen, the first {shortened(labels[strange[0]].as_py())} "
                f"of {graph.level} {shortened(graph.row_ids[strange[0]].as_py())}; empty these "
                "cells, or train again with them"
            )
        return torch.from_numpy(positions.fill_null(-1).to_numpy(False).astype(np.int64))


def _inferred_kind(table: pa.Table) -> TargetKind:
    if table.num_columns > 1:
        return "regression"
    column = table.column(0)
    if not (pa.types.is_integer(column.type) or _is_real(column.type)):
        return "classification"
    distinct = pc.unique(column.drop_null())
    if len(distinct) > MOST_CLASSES_OF_NUMBERS or not _all_whole(distinct):
        return "regression"
    return "classification"


def _fit_classes(graph: Graph, table: pa.Table, known: Tensor) -> TargetEncoder:
    name = table.column_names[0]
    if table.num_columns > 1:
        raise GraphInputError(
            f"the target has {table.num_columns} columns, {_quoted(table.column_names)}; classes "
            "are one column: name one of them"
        )
    labels = _as_labels(table.column(0).combine_chunks())
    counts = labels.drop_null().value_counts()
    order = pc.sort_indices(counts.field("values"))
    classes = counts.field("values").take(order).to_pylist()
    number = counts.field("counts").take(order).to_pylist()
    if len(classes) < 2:
        raise GraphInputError(
            f"the target {name!r} of {graph.origin} has one class only, {shortened(classes[0])}, "
            f"in {number[0]:,} rows; there is nothing to tell apart: label other rows too"
        )
    if len(classes) > len(known) / 2 and len(classes) > MOST_CLASSES_OF_NUMBERS:
        raise GraphInputError(
            f"the target {name!r} of {graph.origin} has {len(classes):,} classes in "
            f"{len(known):,} labelled rows; name another column, or predict it as a number"
        )
    once = [label for label, count in zip(classes, number, strict=True) if count == 1]
    notes: tuple[str, ...] = ()
    if once:
        shown = ", ".join(shortened(label) for label in once[:5]) + (", …" if once[5:] else "")
        row = pc.index(labels, once[0]).as_py()
        notes = (
            f"target {name!r}: {len(once):,} of {len(classes):,} classes are there only once "
            f"({shown}; the first is {graph.level} {shortened(graph.row_ids[row].as_py())}): such "
            "a class is learnt or tested, never both; join it with another, or label more",
        )
    return TargetEncoder("classification", (name,), tuple(classes), notes=notes)


def _fit_numbers(graph: Graph, table: pa.Table, rows: Tensor) -> TargetEncoder:
    chosen = rows.cpu().numpy()
    known = [column.is_valid().to_numpy() for column in table.columns]
    partly = int((np.any(known, axis=0) & ~np.all(known, axis=0)).sum())
    notes: tuple[str, ...] = ()
    if partly:
        notes = (
            f"target: {partly:,} {graph.level}(s) of {graph.origin} have a value in some of the "
            f"columns {_quoted(table.column_names)} only; they are not learnt from",
        )
    means, scales = [], []
    for name in table.column_names:
        numbers = _numbers(table.column(name).combine_chunks(), name, graph)[chosen]
        numbers = numbers[~np.isnan(numbers)]
        if not len(numbers) or numbers.min() == numbers.max():
            raise GraphInputError(
                f"the target {name!r} of {graph.origin} has "
                + (f"one value only, {numbers[0]:g}," if len(numbers) else "no value")
                + f" in the {len(chosen):,} rows to learn from; there is nothing to predict"
            )
        means.append(float(numbers.mean()))
        scales.append(float(numbers.std()))
    return TargetEncoder(
        "regression", tuple(table.column_names), (), tuple(means), tuple(scales), notes
    )


def _as_labels(column: pa.Array, text: bool = False) -> pa.Array:
    """Labels as strings, integers or booleans; whole numbers that became real ones as integers."""
    kind = column.type
    if text and not pa.types.is_string(kind):
        return column.cast(pa.string())
    if pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return column
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if _is_real(kind) and _all_whole(column):
        return column.cast(pa.int64())
    return column.cast(pa.string())


def _comparable(labels: pa.Array, classes: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Labels and classes in one type: numbers where both have numbers or truth values."""
    if labels.type == classes.type:
        return labels, classes
    text = any(pa.types.is_string(array.type) for array in (labels, classes))
    kind = pa.string() if text else pa.int64()
    return labels.cast(kind), classes.cast(kind)


def _numbers(column: pa.Array, name: str, graph: Graph) -> np.ndarray[Any, Any]:
    """A column as float64 with NaN where it is null."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or _is_real(kind)):
        value = next((v for v in column.to_pylist() if v is not None), None)
        raise GraphInputError(
            f"the target {name!r} of {graph.origin} is not numbers: it has {shortened(value)}; "
            "predict it as classes, or name a column of numbers"
        )
    numbers: np.ndarray[Any, Any] = column.cast(pa.float64(), safe=False).to_numpy(
        zero_copy_only=False
    )
    if np.isinf(numbers).any():
        row = int(np.flatnonzero(np.isinf(numbers))[0])
        raise GraphInputError(
            f"the target {name!r} of {graph.origin} is infinite for {graph.level} "
            f"{shortened(graph.row_ids[row].as_py())}; empty this cell or correct it"
        )
    return numbers


def _is_real(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _all_whole(column: Any) -> bool:
    numbers = column.drop_null().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return bool(np.isfinite(numbers).all() and (numbers == np.round(numbers)).all())


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
