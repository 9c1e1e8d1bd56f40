"""Direction, duplicates and self loops of a list of edges."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from adgn.data.errors import GraphInputError

__all__ = ["Edges", "tidy_edges"]

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
            notes.append(_direction_note(origin, ordered, backwards, symmetric, directed, loops))
    if not directed and not symmetric:
        both = np.concatenate([ends, ends[::-1]], axis=1)
        doubled = None if weight is None else np.concatenate([weight, weight])
        ends, weight = _merged(both, doubled, _keys(both, num_nodes), mean=True)
    elif not directed and weight is not None and not _symmetric_weight(ends, weight, num_nodes):
        both = np.concatenate([ends, ends[::-1]], axis=1)
        doubled = np.concatenate([weight, weight])
        ends, weight = _merged(both, doubled, _keys(both, num_nodes), mean=True)
        notes.append(
            f"{origin}: the weights of the two directions of some edges differ; their mean is taken"
        )
    return Edges(
        torch.from_numpy(np.ascontiguousarray(ends)),
        None if weight is None else torch.from_numpy(weight.astype(np.float32)),
        directed,
        tuple(notes),
    )


def check_weights(weight: Numbers, origin: str) -> None:
    """Raises where a weight is missing or not finite."""
    wrong = np.flatnonzero(~np.isfinite(weight))
    if len(wrong):
        raise GraphInputError(
            f"{origin} has {len(wrong):,} value(s) that are missing or not finite, the first at "
            f"row {wrong[0]:,} (from 0); fill them in, or leave out the column"
        )


def _keys(ends: Integers, num_nodes: int) -> Integers:
    """One number per edge, the same for the same ends."""
    keys: Integers = ends[0] * np.int64(num_nodes) + ends[1]
    return keys


def _merged(
    ends: Integers, weight: Numbers | None, keys: Integers, *, mean: bool
) -> tuple[Integers, Numbers | None]:
    """One edge for each key, in the order of their first appearance."""
    if weight is None:
        _, first = np.unique(keys, return_index=True)
        return ends[:, np.sort(first)], None
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    total: Numbers = np.bincount(group, weights=weight).astype(np.float64)
    if mean:
        total = total / np.bincount(group)
    order = np.argsort(first)
    return ends[:, first[order]], total[order]


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
    both = (len(np.intersect1d(ordered, backwards, assume_unique=True)) - loops) // 2
    return (
        f"{origin}: nothing says whether edges have a direction, and {_pairs(both)} in both; taken "
        "as directed, from source to target (directed=False: each edge counts both ways)"
    )


def _pairs(number: int) -> str:
    if not number:
        return "no pair of nodes is listed"
    return f"{number:,} pair of nodes is" if number == 1 else f"{number:,} pairs of nodes are"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what} is" if number == 1 else f"{number:,} {what}s are"
