"""Direction, duplicates and self loops of a list of edges."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from adgn.data.root import GraphInputError

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Edges:
    """Edges without duplicates; both directions of each where they are not directed."""

    index: Tensor
    weight: Tensor | None
    directed: bool
    notes: tuple[str, ...]


def tidy_edges(
    ends: Integers,
    weight: Numbers | None,
    num_nodes: int,
    directed: bool | None,
    origin: str = "edge_index",
) -> Edges:
    """Merges duplicates, counts self loops and settles the direction.

    - An edge that is listed several times is one edge; its weights are added up.
    - Self loops stay.
    - `directed=None`: edges are undirected where each is listed in both directions, with the same
      weight, and directed elsewhere.
    - `directed=False`: the other direction is added where it is not listed; where both are and
      their weights differ, the weight is their mean.

    Args:
        ends: `[2, R]`, positions of sources and targets.
        weight: `[R]`.
        num_nodes: The number of nodes.
        directed: What the user says about it.
        origin: What the notes call the list of edges.

    Example:
        >>> edges = tidy_edges(np.array([[0, 0, 1], [1, 1, 1]]), None, 2, directed=False)
        >>> edges.index.tolist()
        [[0, 1, 1], [1, 1, 0]]
        >>> for note in edges.notes:
        ...     print(note)
        edge_index: 1 self loop is kept
        edge_index: 1 edge is listed more than once and was merged
    """
    notes = []
    loops = int((ends[0] == ends[1]).sum())
    if loops:
        notes.append(f"{origin}: {_count(loops, 'self loop')} kept")
    keys = _keys(ends, num_nodes)
    ordered = np.sort(keys)
    repeated = int((ordered[1:] == ordered[:-1]).sum())
    if repeated:
        ends, weight = _merged(ends, weight, keys, mean=False)
        ordered = ordered[np.append(True, ordered[1:] != ordered[:-1])]
        added = "" if weight is None else ", the weights added up"
        notes.append(
            f"{origin}: {_count(repeated, 'edge')} listed more than once and "
            f"{'was' if repeated == 1 else 'were'} merged{added}"
        )
    del keys
    backwards = np.sort(_keys(ends[::-1], num_nodes))
    symmetric = np.array_equal(ordered, backwards)
    if directed is None:
        same_weight = symmetric and _symmetric_weight(ends, weight, num_nodes)
        directed = not same_weight
        if ends.shape[1]:
            loops = int((ends[0] == ends[1]).sum())  # each once now
            notes.append(_direction_note(origin, ordered, backwards, symmetric, directed, loops))
    if not directed and not (symmetric and _symmetric_weight(ends, weight, num_nodes)):
        listed = weight
        both = np.concatenate([ends, ends[::-1]], axis=1)
        doubled = None if weight is None else np.concatenate([weight, weight])
        ends, weight = _merged(both, doubled, _keys(both, num_nodes), mean=True)
        if listed is not None and weight is not None:
            # The listed edges come first; where the other direction has another weight, so has
            # their mean.
            differing = int((weight[: len(listed)] != listed).sum()) // 2
            if differing:
                notes.append(
                    f"{origin}: {_count(differing, 'pair of nodes', 'pairs of nodes')} listed in "
                    "both directions with different weights; their mean is taken"
                )
    return Edges(
        torch.from_numpy(np.ascontiguousarray(ends)),
        None if weight is None else torch.from_numpy(weight.astype(np.float32)),
        directed,
        tuple(notes),
    )


def edges_by_graph(edges: Edges, graph: Integers) -> Edges:
    """Edges sorted by graph, those of one graph in the order that they had.

    Raises:
        GraphInputError: An edge joins nodes of two graphs.
    """
    of_source, of_target = graph[edges.index.numpy()]
    crossing = np.flatnonzero(of_source != of_target)
    if len(crossing):
        raise GraphInputError(
            f"{len(crossing):,} edge(s) join nodes of two graphs, the first "
            f"{edges.index[:, crossing[0]].tolist()}; remove them"
        )
    order = torch.from_numpy(np.argsort(of_source, kind="stable"))
    weight = None if edges.weight is None else edges.weight[order]
    return Edges(edges.index[:, order].contiguous(), weight, edges.directed, edges.notes)


def check_weights(weight: Numbers, what: str, remedy: str, place: Callable[[int], str]) -> None:
    """Raises where a weight is missing, infinite or negative.

    Args:
        weight: `[R]`, NaN where it is missing.
        what: What has the weights, for the message.
        remedy: How to do without them.
        place: What a user calls a row.
    """
    for wrong, problem in (
        (np.isnan(weight), "missing"),
        (np.isinf(weight), "infinite"),
        (weight < 0, "negative"),
    ):
        rows = np.flatnonzero(wrong)
        if len(rows):
            raise GraphInputError(
                f"{what}: {len(rows):,} weight(s) are {problem}, first at {place(int(rows[0]))}; "
                f"weights are finite numbers from 0 on: correct them, or {remedy}"
            )


def _keys(ends: Integers, num_nodes: int) -> Integers:
    """One number per edge, the same for the same ends."""
    keys: Integers = ends[0] * np.int64(num_nodes) + ends[1]
    return keys


def _merged(
    ends: Integers, weight: Numbers | None, keys: Integers, *, mean: bool
) -> tuple[Integers, Numbers | None]:
    """One edge for each key, in the order of their first appearance."""
    order = np.argsort(keys, kind="stable")  # the first of equal keys stays the first
    ordered = keys[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    first = order[starts]
    kept = np.zeros(len(keys), dtype=bool)
    kept[first] = True
    if weight is None:
        return ends[:, kept], None
    total: Numbers = np.zeros(len(keys))
    total[first] = np.add.reduceat(weight[order], starts)
    if mean:
        total[first] /= np.diff(np.append(starts, len(keys)))
    return ends[:, kept], total[kept]


def _symmetric_weight(ends: Integers, weight: Numbers | None, num_nodes: int) -> bool:
    """Whether both directions of edges that are all there twice have the same weight."""
    if weight is None:
        return True
    forth = np.argsort(_keys(ends, num_nodes))
    back = np.argsort(_keys(ends[::-1], num_nodes))
    return bool(np.array_equal(weight[forth], weight[back]))


def _direction_note(
    origin: str,
    ordered: Integers,
    backwards: Integers,
    symmetric: bool,
    directed: bool,
    loops: int,
) -> str:
    if not directed:
        return f"{origin}: each edge is listed in both directions; taken as undirected"
    if symmetric:
        return (
            f"{origin}: each edge is listed in both directions, with other weights; taken as "
            "directed (directed=False: the mean of the two)"
        )
    merged = np.concatenate([ordered, backwards])
    merged.sort(kind="stable")  # which merges two sorted parts without sorting them again
    both = (int((merged[1:] == merged[:-1]).sum()) - loops) // 2
    pairs = (
        _count(both, "pair of nodes", "pairs of nodes") if both else "no pair of nodes is listed"
    )
    return (
        f"{origin}: nothing says whether edges have a direction, and {pairs} in both; taken "
        "as directed, from source to target (directed=False: each edge counts both ways)"
    )


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one} is" if number == 1 else f"{number:,} {many or f'{one}s'} are"
