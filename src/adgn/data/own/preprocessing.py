"""Columns of a user's graph as features, decided once and then done the same way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from adgn._util.suggestions import did_you_mean, nearest
from adgn.data.features import SPARSE_UP_TO
from adgn.data.own.columns import (
    Block,
    ColumnPlan,
    UnusableColumnError,
    as_numbers,
    encode_column,
    plan_column,
)
from adgn.data.own.graph import Graph
from adgn.data.own.matrices import (
    WIDE,
    ArrayPlan,
    assemble,
    count_entries,
    encode_array,
    plan_array,
)
from adgn.data.root import GraphInputError

SHOWN_ONE_BY_ONE = 20  # columns of one kind; more of them are one row of the decisions
Blocks = list[tuple[Block, int]]


class Decision(NamedTuple):
    """What became of a column, or of many alike: a row of a table."""

    column: str
    kind: str
    features: int
    missing: int
    note: str


@dataclass(frozen=True)
class Features:
    """The features of a graph.

    Args:
        x: `[num_nodes, F]`, dense float32, or torch CSR.
        names: The names of its columns.
        edge_weight: `[E]`, or `None`.
        notes: What new data has that the model has not seen, each with a count.
    """

    x: Tensor
    names: tuple[str, ...]
    edge_weight: Tensor | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preprocessing:
    """What was decided about the columns of a graph, and how features follow from it.

    Args:
        columns: What is done with each column of the nodes.
        edge_columns: What is done with each column of the edges; means over the edges of a node
            become features of the node.
        array: What is done with the array `x`.
        degrees: What is done with the degrees of nodes, the features where there is no column.
        weight_scale: What edge weights are divided by: the mean of their absolute values.
        directed: Whether edges had a direction.
        sparse: Whether features are kept as CSR.

    Example:
        >>> graph = Graph.from_arrays([[1.0, 0.0], [3.0, 0.0]], [[0], [1]])
        >>> preprocessing = Preprocessing.fit(graph)
        >>> preprocessing.transform(graph).x
        tensor([[-1.],
                [ 1.]])
        >>> Preprocessing.from_json(preprocessing.to_json()) == preprocessing
        True
    """

    columns: tuple[ColumnPlan, ...] = ()
    edge_columns: tuple[ColumnPlan, ...] = ()
    array: ArrayPlan | None = None
    degrees: tuple[ColumnPlan, ...] = ()
    weight_scale: float | None = None
    directed: bool = True
    sparse: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature."""
        names = [feature for plan in self.columns for feature in plan.features]
        names += self.array.names if self.array else ()
        for side, _ in _sides(self.directed):
            names += [f"{f} ({side})" for plan in self.edge_columns for f in plan.features]
        names += [feature for plan in self.degrees for feature in plan.features]
        return tuple(names) or ("constant",)

    @property
    def category_columns(self) -> tuple[str, ...]:
        """Columns of categories: `categories=` of new tables, so that 007 stays a name there."""
        plans = (*self.columns, *self.edge_columns)
        return tuple(plan.name for plan in plans if plan.kind == "category")

    @classmethod
    def fit(cls, graph: Graph, rows: Tensor | None = None) -> "Preprocessing":
        """Decides what becomes of each column of a graph.

        Args:
            graph: What the model is trained on.
            rows: Positions of the nodes whose values may be looked at, those that a model learns
                from; all by default. Of the edges those at such a node are looked at.

        Raises:
            GraphInputError: Columns can be no features; the message has all of them, each with the
                reason and the remedy.
        """
        chosen = None if rows is None else rows.cpu().numpy()
        columns = _plans(graph.node_columns, chosen, graph.origin)
        edge_columns: tuple[ColumnPlan, ...] = ()
        if graph.edge_columns is not None and graph.edge_ends is not None:
            at_rows = (
                None if chosen is None else _edges_at(graph.edge_ends, chosen, graph.num_nodes)
            )
            edge_columns = _plans(
                graph.edge_columns, at_rows, f"the edges of {graph.origin}", of_edges=True
            )
        array = None if graph.x is None else plan_array(graph.x, graph.feature_names, chosen)
        plan = cls(
            columns,
            edge_columns,
            array,
            weight_scale=_weight_scale(graph),
            directed=graph.directed,
        )
        if plan.names == ("constant",):
            plan = replace(
                plan, degrees=_plans(_degrees(graph, graph.directed), chosen, graph.origin)
            )
        blocks, _ = plan._blocks(graph)
        width = sum(features for _, features in blocks)
        entries = count_entries(blocks)
        sparse = width >= WIDE and entries <= SPARSE_UP_TO * graph.num_nodes * width
        return replace(plan, sparse=sparse)

    def transform(self, graph: Graph) -> Features:
        """The features of a graph, by what was decided.

        Raises:
            GraphInputError: A column that is needed is not there, or has another type; or edges
                have a direction and those of the training graph had none, or the other way round.
        """
        if graph.num_edges and graph.directed != self.directed:
            kind, trained = ("directed", "undirected")[:: 1 if graph.directed else -1]
            raise GraphInputError(
                f"the edges of {graph.origin} are {kind}; the model was trained with {trained} "
                f"ones: make the graph with directed={self.directed}"
            )
        blocks, notes = self._blocks(graph)
        x = assemble(blocks, graph.num_nodes, sparse=self.sparse)
        weight = graph.edge_weight
        if self.weight_scale is None and weight is not None:
            notes.append(
                f"{graph.num_edges:,} edge weights are not used: the model was trained without any"
            )
            weight = None
        elif self.weight_scale is not None:
            if weight is None and not graph.num_edges:
                weight = torch.empty(0)
            elif weight is None:
                raise GraphInputError(
                    f"{graph.origin} has no edge weights; the model was trained with them: name "
                    "their column, weight='…'"
                )
            weight = weight / self.weight_scale
        return Features(x, self.names, weight, tuple(notes))

    def decisions(self) -> list[Decision]:
        """A small table: what became of each column.

        Columns of one kind are one row where they are more than 20.

        Example:
            >>> graph = Graph.from_arrays([[1.0, 0.0], [3.0, 0.0]], [[0], [1]])
            >>> for row in Preprocessing.fit(graph).decisions():
            ...     print(*row, sep=" | ")
            x (2 columns) | number | 1 | 0 | 1 left out: always the same
        """
        rows = _decisions(self.columns)
        if self.array is not None:
            rows.append(_array_decision(self.array))
        sides = " and ".join(side for side, _ in _sides(self.directed))
        for row in _decisions(self.edge_columns):
            note = f"no model takes features of edges: means over {sides} of a node"
            features = row.features * len(_sides(self.directed))
            rows.append(
                row._replace(
                    column=f"edges: {row.column}",
                    features=features,
                    note="; ".join(filter(None, [row.note, note if features else ""])),
                )
            )
        for row in _decisions(self.degrees):
            note = "; ".join(filter(None, ["no other column tells nodes apart", row.note]))
            rows.append(row._replace(note=note))
        if self.names == ("constant",):
            rows.append(Decision("(none)", "constant", 1, 0, "nothing tells nodes apart"))
        if self.weight_scale is not None:
            note = f"divided by {self.weight_scale:.4g}, the mean of their absolute values"
            rows.append(Decision("edge weights", "weight", 0, 0, note))
        return rows

    def to_json(self) -> dict[str, Any]:
        """All of it in types that JSON has."""
        return {
            "columns": [plan.to_json() for plan in self.columns],
            "edge_columns": [plan.to_json() for plan in self.edge_columns],
            "array": None if self.array is None else self.array.to_json(),
            "degrees": [plan.to_json() for plan in self.degrees],
            "weight_scale": self.weight_scale,
            "directed": self.directed,
            "sparse": self.sparse,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Preprocessing":
        """What `to_json` gave."""
        columns, edges, degrees = (
            tuple(ColumnPlan.from_json(plan) for plan in content[key])
            for key in ("columns", "edge_columns", "degrees")
        )
        array = content["array"]
        return cls(
            columns=columns,
            edge_columns=edges,
            array=None if array is None else ArrayPlan.from_json(array),
            degrees=degrees,
            weight_scale=content["weight_scale"],
            directed=content["directed"],
            sparse=content["sparse"],
        )

    def _blocks(self, graph: Graph) -> tuple[Blocks, list[str]]:
        """The features of each column, and what there is to say about them."""
        notes: list[str] = []
        blocks = _encode(self.columns, graph.node_columns, graph.origin, notes)
        if self.array is not None:
            blocks.append((encode_array(self.array, graph.x), len(self.array.kept)))
        elif graph.x is not None:
            notes.append(
                f"the array x with {graph.x.shape[1]:,} columns is not used: the model was trained "
                "without one"
            )
        used = {plan.name for plan in self.columns}
        extra = [name for name in graph.node_columns.column_names if name not in used]
        if extra:
            shown = ", ".join(map(repr, extra[:5])) + (", …" if extra[5:] else "")
            notes.append(
                f"{graph.origin}: {len(extra):,} column(s) that the model has never seen are not "
                f"used ({shown})"
            )
        if any(plan.features for plan in self.edge_columns):
            blocks += self._edge_blocks(graph, notes)
        if self.degrees:
            degrees = _degrees(graph, self.directed)
            blocks += _encode(self.degrees, degrees, graph.origin, notes)
        if not sum(features for _, features in blocks):
            blocks = [(Block(dense=np.ones((graph.num_nodes, 1), dtype=np.float32)), 1)]
        return blocks, notes

    def _edge_blocks(self, graph: Graph, notes: list[str]) -> Blocks:
        """Means over the edges of a node, on each of the sides that are told apart."""
        if graph.edge_columns is None and not graph.num_edges:
            width = sum(len(plan.features) for plan in self.edge_columns)
            none = Block(dense=np.zeros((graph.num_nodes, width), dtype=np.float32))
            return [(none, width) for _ in _sides(self.directed)]
        if graph.edge_columns is None or graph.edge_ends is None:
            raise GraphInputError(
                f"{graph.origin} has no columns of edges; the model was trained with "
                f"{', '.join(repr(plan.name) for plan in self.edge_columns if plan.features)}"
            )
        encoded = _encode(
            self.edge_columns, graph.edge_columns, f"the edges of {graph.origin}", notes
        )
        ends = graph.edge_ends.numpy()
        values = assemble(encoded, ends.shape[1], sparse=False).numpy()
        blocks = []
        for _, rows in _sides(self.directed):
            nodes = ends[list(rows)].ravel()
            edge = np.tile(np.arange(ends.shape[1]), len(rows))
            shape = (graph.num_nodes, ends.shape[1])
            incidence = scipy.sparse.csr_matrix((np.ones(len(nodes)), (nodes, edge)), shape)
            count = np.maximum(np.bincount(nodes, minlength=graph.num_nodes), 1)
            means = np.asarray(incidence @ values) / count[:, None]
            blocks.append((Block(dense=means.astype(np.float32)), values.shape[1]))
        return blocks


def _sides(directed: bool) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The kinds of edges of a node that are told apart, each with its rows of `edge_ends`."""
    if directed:
        return ("incoming edges", (1,)), ("outgoing edges", (0,))
    return (("edges", (0, 1)),)


def _plans(
    table: pa.Table, rows: NDArray[np.int64] | None, origin: str, *, of_edges: bool = False
) -> tuple[ColumnPlan, ...]:
    plans, unusable = [], []
    for name in table.column_names:
        try:
            plans.append(plan_column(name, table.column(name), rows, of_edges=of_edges))
        except UnusableColumnError as error:
            unusable.append((name, error))
    if len(unusable) == 1:
        raise GraphInputError(f"{origin}: {unusable[0][1]}") from None
    if unusable:
        reasons = "\n".join(f"  {error}" for _, error in unusable)
        names = [name for name, _ in unusable]
        raise GraphInputError(
            f"{origin}: {len(unusable)} columns can be no features; ignore={names} leaves all of "
            f"them out\n{reasons}"
        )
    return _mostly_zero(plans, table, rows)


def _mostly_zero(
    plans: list[ColumnPlan], table: pa.Table, rows: NDArray[np.int64] | None
) -> tuple[ColumnPlan, ...]:
    """Many columns of numbers that are mostly zero are scaled alike and not shifted."""
    if sum(plan.kind == "number" for plan in plans) < WIDE:
        return tuple(plans)
    found: dict[int, tuple[int, float]] = {}
    for place, plan in enumerate(plans):
        if plan.kind != "number" or not plan.mean:
            continue
        numbers = np.nan_to_num(as_numbers(plan.name, table.column(plan.name)))
        numbers = numbers if rows is None else numbers[rows]
        entries = int(np.count_nonzero(numbers))
        if entries <= SPARSE_UP_TO * len(numbers):
            found[place] = (entries, float((numbers**2).sum()))
    if len(found) >= WIDE:
        entries = sum(count for count, _ in found.values())
        scale = float(np.sqrt(sum(squares for _, squares in found.values()) / entries))
        for place in found:
            plans[place] = replace(plans[place], kind="sparse number", mean=(0.0,), scale=(scale,))
    return tuple(plans)


def _encode(plans: Sequence[ColumnPlan], table: pa.Table, origin: str, notes: list[str]) -> Blocks:
    needed = [plan for plan in plans if plan.features]
    names = set(table.column_names)
    lacking = [plan.name for plan in needed if plan.name not in names]
    if lacking:
        shown = ", ".join(map(repr, lacking[:5])) + (", …" if lacking[5:] else "")
        hint = did_you_mean(nearest(lacking[0], names))
        raise GraphInputError(
            f"{origin} lacks {len(lacking):,} column(s) that the model was trained with: {shown}; "
            f"add them, empty where nothing is known.{hint}"
        )
    blocks = []
    for plan in needed:
        try:
            block, said = encode_column(plan, table.column(plan.name))
        except GraphInputError as error:
            raise GraphInputError(f"{origin}: {error}") from None
        blocks.append((block, len(plan.features)))
        notes += [f"{origin}: {note}" for note in said]
    return blocks


def _edges_at(ends: Tensor, rows: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    """The edges with an end among some nodes."""
    chosen = np.zeros(num_nodes, dtype=bool)
    chosen[rows] = True
    return np.flatnonzero(chosen[ends.numpy()].any(axis=0))


def _weight_scale(graph: Graph) -> float | None:
    if graph.edge_weight is None or not graph.num_edges:
        return None
    scale = float(graph.edge_weight.abs().mean())
    if scale == 0:
        raise GraphInputError(
            f"all {graph.num_edges:,} edge weights of {graph.origin} are 0: no edge would count; "
            "leave the column out"
        )
    return scale


def _degrees(graph: Graph, directed: bool) -> pa.Table:
    """The logarithms of degrees, which every graph has."""
    source, target = (
        np.log1p(np.bincount(end, minlength=graph.num_nodes)) for end in graph.edge_index.numpy()
    )
    if directed:
        return pa.table({"log in-degree": target, "log out-degree": source})
    return pa.table({"log degree": target})


def _decisions(plans: Sequence[ColumnPlan]) -> list[Decision]:
    alike: dict[tuple[str, str], list[ColumnPlan]] = {}
    for plan in plans:
        alike.setdefault((plan.kind, plan.note if plan.kind == "left out" else ""), []).append(plan)
    rows, done = [], set()
    for plan in plans:
        key = (plan.kind, plan.note if plan.kind == "left out" else "")
        group = alike[key]
        if len(group) <= SHOWN_ONE_BY_ONE:
            rows.append(_row(plan.name, [plan]))
        elif key not in done:
            done.add(key)
            name = f"{group[0].name} … {group[-1].name} ({len(group):,} columns)"
            rows.append(_row(name, group))
    return rows


def _row(name: str, plans: Sequence[ColumnPlan]) -> Decision:
    kind = plans[0].kind
    notes = {plan.note for plan in plans}
    note = notes.pop() if len(notes) == 1 else ""
    if kind in ("0/1", "sparse number"):
        how = "as they are" if kind == "0/1" else "mostly zero: scaled, not shifted"
        note = "; ".join(filter(None, [note, how if len(plans) > 1 else ""]))
    missing = sum(plan.missing_rows for plan in plans)
    return Decision(name, kind, sum(len(plan.features) for plan in plans), missing, note)


def _array_decision(plan: ArrayPlan) -> Decision:
    kept, left_out = len(plan.kept), plan.width - len(plan.kept)
    numbers = kept - plan.zero_or_one - plan.mostly_zero
    kinds = {"0/1": plan.zero_or_one, "sparse number": plan.mostly_zero, "number": numbers}
    notes = []
    if plan.zero_or_one:
        notes.append(f"{plan.zero_or_one:,} with only 0 and 1 stay as they are")
    if plan.mostly_zero:
        notes.append(f"{plan.mostly_zero:,} are mostly zero: scaled, not shifted")
    if left_out:
        notes.append(f"{left_out:,} left out: always the same")
    kind = max(kinds, key=lambda name: kinds[name]) if kept else "left out"
    return Decision(f"x ({plan.width:,} columns)", kind, kept, 0, "; ".join(notes))
