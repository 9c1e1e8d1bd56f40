"""SDRF: edges are added around the edge of the lowest curvature."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from adgn.transforms.base import EdgeGraph, Transform, register_transform
from adgn.transforms.curvature import (
    FORMULAS,
    CurvatureKind,
    Integers,
    Numbers,
    SimpleGraph,
    curvature_of,
)
from adgn.transforms.direction import Undirected

_FORWARD, _BACKWARD = 1, 2  # an edge from the smaller to the larger node, and the other way


@register_transform
class SDRF(Transform):
    r"""Stochastic discrete Ricci flow ([Topping et al.](https://arxiv.org/abs/2111.14522)).

    `iterations` times: (1) take the edge $i \sim j$ of the lowest curvature; (2) for all pairs
    $k \in N(i) \cup \{i\}$, $l \in N(j) \cup \{j\}$ that are not adjacent, work out by how much
    the edge $k \sim l$ would raise it,

    $$
    x_{kl} = \mathrm{Ric}_{G + kl}(i, j) - \mathrm{Ric}_G(i, j),
    $$

    and add one, drawn with probability $\mathrm{softmax}(\tau x)$, where each pair counts once; (3)
    remove the edge of the largest curvature if it is above `remove_above`. It ends early where
    nothing was added or removed.

    The result is the last of the states whose lowest curvature is the highest that was seen, so it
    is never below that of the given graph. A state without edges has no curvature and is never the
    result. `report` says how many edges were added and removed.

    Curvature is that of the graph without directions, see
    [`balanced_forman_curvature`][adgn.transforms.balanced_forman_curvature]; self loops have no
    part in it and stay. An added pair has the directions of the edge $i \sim j$: $k \to l$ for
    $i \to j$, and both for both. With `undirected` all edges get both directions first.

    Example:
        >>> from adgn.transforms import EdgeGraph, balanced_forman_curvature
        >>> edges = torch.tensor([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])  # two triangles
        >>> graph = EdgeGraph(edges, 6)
        >>> result = SDRF(iterations=2, temperature=None, undirected=True)(graph)
        >>> result.report["sdrf.added"]
        2.0
        >>> before = balanced_forman_curvature(edges, 6).min()
        >>> bool(balanced_forman_curvature(result.edge_index, 6).min() > before)
        True
    """

    name = "sdrf"
    title = "SDRF (Ricci flow)"
    paper = "https://arxiv.org/abs/2111.14522"
    is_slow = True
    uses_weights = False

    iterations: int = Field(100, ge=1, description="edges added at most")
    temperature: float | None = Field(
        50.0, ge=0, description="τ: 0 draws any pair; large, or `none`: the one that raises most"
    )
    remove_above: float | None = Field(
        None, description="edges of a curvature above this are removed; `none`: no edge is"
    )
    undirected: bool = Field(False, description="whether edges get both directions first")
    curvature: CurvatureKind = Field(
        "definition", description="`definition`, or `released`: as the published code has it"
    )
    seed: int = Field(0, ge=0, lt=2**32, description="of the draws")

    def apply(self, graph: EdgeGraph) -> EdgeGraph:
        """The rewired graph."""
        if self.undirected:
            graph = Undirected()(graph)
        flow = RicciFlow(graph, self.curvature)
        states = run_flow(flow, self)
        edges = flow.edges(graph.edge_index, states.keys, states.directions)
        report = {
            "sdrf.added": float(len(np.setdiff1d(states.keys, flow.given_keys))),
            "sdrf.removed": float(len(np.setdiff1d(flow.given_keys, states.keys))),
            "sdrf.iterations": float(states.iterations),
        }
        if len(flow.given_keys):
            report |= {"sdrf.minimum_before": states.before, "sdrf.minimum_after": states.lowest}
        return replace(graph, edge_index=edges, report={**graph.report, **report})

    def expected_edges(self, nodes: int, edges: int) -> int:
        """As many as there are, and those added."""
        return (edges * 2 if self.undirected else edges) + 2 * self.iterations

    def describe(self, report: Mapping[str, float]) -> str:
        """How many edges were added and removed, and what it changed."""
        told = f"{report['added']:,.0f} edges added, {report['removed']:,.0f} removed"
        if "minimum_before" in report:
            low, high = report["minimum_before"], report["minimum_after"]
            told += f"; lowest curvature {low:.4f} → {high:.4f}"
        return told


class RicciFlow:
    """A graph that is rewired, with the curvature of all its edges.

    Attributes:
        graph: The graph as it is now, without directions.
        values: The curvature of each edge, in the order of `graph.first` and `graph.second`.
        directions: For each edge the directions that it has.
    """

    def __init__(self, graph: EdgeGraph, kind: CurvatureKind = "definition") -> None:
        source, target = graph.edge_index.cpu().numpy().astype(np.int64)
        self.kind: CurvatureKind = kind
        self.graph = SimpleGraph(source, target, graph.num_nodes)
        self.given_keys = self.graph.keys
        self.values = curvature_of(self.graph, self.graph.first, self.graph.second, kind)
        apart = source != target
        low, high = np.minimum(source, target)[apart], np.maximum(source, target)[apart]
        place = np.searchsorted(self.given_keys, low * graph.num_nodes + high)
        self.directions = np.zeros(len(self.given_keys), dtype=np.uint8)
        np.bitwise_or.at(
            self.directions, place, np.where(source < target, _FORWARD, _BACKWARD)[apart]
        )
        self.given_directions = self.directions.copy()

    def add(self, u: int, v: int, directions: int) -> None:
        """Adds an edge; `directions` are those from `u`'s side."""
        if u > v:
            directions = (directions >> 1) | ((directions & 1) << 1)
        place = self.graph.add(u, v)
        self.values = np.insert(self.values, place, 0.0)
        self.directions = np.insert(self.directions, place, directions)
        self._renew(self.graph.near(u, v))

    def remove(self, place: int) -> None:
        """Removes the edge at a place."""
        u, v = int(self.graph.first[place]), int(self.graph.second[place])
        near = self.graph.near(u, v)
        self.graph.remove(u, v)
        self.values = np.delete(self.values, place)
        self.directions = np.delete(self.directions, place)
        self._renew(np.delete(near, place))

    def _renew(self, near: NDArray[np.bool_]) -> None:
        first, second = self.graph.first[near], self.graph.second[near]
        self.values[near] = curvature_of(self.graph, first, second, self.kind)

    def edges(self, given: Tensor, keys: Integers, directions: NDArray[np.uint8]) -> Tensor:
        """The edge list of a state: what is left of the given edges, in order, and the new ones."""
        nodes = self.graph.num_nodes
        source, target = given.cpu().numpy().astype(np.int64)
        key = np.minimum(source, target) * nodes + np.maximum(source, target)
        wanted = np.where(source < target, _FORWARD, _BACKWARD)
        kept = (source == target) | ((_looked_up(keys, directions, key) & wanted) > 0)
        before = _looked_up(self.given_keys, self.given_directions, keys)
        new = directions & ~before
        low, high = keys // nodes, keys % nodes
        there, back = (new & _FORWARD) > 0, (new & _BACKWARD) > 0
        added = np.stack(
            [
                np.concatenate([low[there], high[back]]),
                np.concatenate([high[there], low[back]]),
            ]
        )
        old = given[:, torch.from_numpy(kept).to(given.device)]
        return torch.cat([old, torch.from_numpy(added).to(given)], dim=1)

    def candidates(self, i: int, j: int) -> tuple[Integers, Integers, Numbers]:
        r"""The pairs around an edge that may be joined, `k` and `l`, and by how much each raises
        the edge's curvature.

        With the neighbours of one end alone (I, J) and of both (C), there are $i \times J$,
        $I \times j$, $I \times J$, $I \times C$, $C \times J$ and $C \times C$; all others are
        adjacent.
        """
        around = _Around(self.graph, i, j)
        ks, ls, gains = zip(*around.gains(self.kind), strict=True)
        return np.concatenate(ks), np.concatenate(ls), np.concatenate(gains)


def _looked_up(keys: Integers, values: NDArray[np.uint8], wanted: Integers) -> NDArray[np.uint8]:
    """The value of each wanted key, 0 where it is not there."""
    if not len(keys):
        return np.zeros(len(wanted), dtype=np.uint8)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found: NDArray[np.uint8] = np.where(keys[place] == wanted, values[place], 0).astype(np.uint8)
    return found


class _Around:
    """The neighbours of an edge's ends, and which of them are adjacent."""

    def __init__(self, graph: SimpleGraph, i: int, j: int) -> None:
        self.i, self.j = i, j
        of_i, of_j = graph.neighbours(i), graph.neighbours(j)
        both = np.intersect1d(of_i, of_j, assume_unique=True)
        only_i = np.setdiff1d(of_i, np.append(both, j), assume_unique=True)
        only_j = np.setdiff1d(of_j, np.append(both, i), assume_unique=True)
        self.groups = {"I": only_i, "J": only_j, "C": both}
        self.d_i, self.d_j = len(of_i), len(of_j)
        nodes = np.concatenate([only_i, only_j, both])
        starts = np.cumsum([0, len(only_i), len(only_j), len(both)])
        self._slices = {name: slice(starts[n], starts[n + 1]) for n, name in enumerate("IJC")}
        place = np.full(graph.num_nodes, -1, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        adjacent = np.zeros((len(nodes), len(nodes)), dtype=bool)
        for row, node in enumerate(nodes):
            columns = place[graph.neighbours(int(node))]
            adjacent[row, columns[columns >= 0]] = True
        self._adjacent = adjacent

    def block(self, rows: str, columns: str) -> NDArray[np.bool_]:
        """Which of the nodes of one group are adjacent to which of another."""
        return self._adjacent[self._slices[rows], self._slices[columns]]

    def gains(self, kind: CurvatureKind) -> Iterator[tuple[Integers, Integers, Numbers]]:
        """The pairs of each of the six blocks, and their gains."""
        rise = self._rise_by_definition if kind == "definition" else self._rise_as_released
        value, by_j, by_i, blocks = rise()
        only_i, only_j = self.groups["I"], self.groups["J"]
        yield np.full(len(only_j), self.i), only_j.astype(np.int64), by_j - value
        yield only_i.astype(np.int64), np.full(len(only_i), self.j), by_i - value
        for (rows, columns), raised in blocks.items():
            apart = ~self.block(rows, columns)
            if rows == columns:
                apart = np.triu(apart, 1)  # each pair once
            a, b = np.nonzero(apart)
            gain = np.zeros(len(a)) if raised is None else raised[a, b] - value
            left, right = self.groups[rows][a], self.groups[columns][b]
            yield left.astype(np.int64), right.astype(np.int64), gain

    def _rise_by_definition(
        self,
    ) -> tuple[float, Numbers, Numbers, dict[tuple[str, str], Numbers | None]]:
        """The curvature now, and with each pair joined: with i, with j, and of the four blocks."""
        ric = FORMULAS["definition"]
        across = self.block("I", "J")
        triangles = len(self.groups["C"])
        rows, columns = across.sum(1), across.sum(0)  # the cycles through each k and each w
        squares = int((rows > 0).sum() + (columns > 0).sum())
        most = max(int(rows.max(initial=0)), int(columns.max(initial=0)))
        value = float(ric(*map(np.array, (self.d_i, self.d_j, triangles, squares, most))))

        def joined(
            m: NDArray[np.bool_], mine: Integers, theirs: Integers, d: int, e: int
        ) -> Numbers:
            # A neighbour of the other end becomes common: its column is no longer outside.
            left = mine[:, None] - m
            greatest = _without_each(theirs)
            count = (left > 0).sum(0) + (theirs > 0).sum() - (theirs > 0)
            largest = np.maximum(left.max(0, initial=0), greatest)
            return ric(np.full(len(theirs), d + 1), e, triangles + 1, count, largest)

        by_j = joined(across, rows, columns, self.d_i, self.d_j)
        by_i = joined(across.T, columns, rows, self.d_j, self.d_i)
        # A new cycle through k and w.
        count = squares + (rows == 0)[:, None].astype(int) + (columns == 0)[None, :]
        largest = np.maximum(most, np.maximum(rows[:, None], columns[None, :]) + 1)
        blocks: dict[tuple[str, str], Numbers | None] = {
            ("I", "J"): ric(self.d_i, self.d_j, triangles, count, largest),
            ("I", "C"): None,
            ("C", "J"): None,
            ("C", "C"): None,
        }
        return value, by_j, by_i, blocks

    def _rise_as_released(
        self,
    ) -> tuple[float, Numbers, Numbers, dict[tuple[str, str], Numbers | None]]:
        """The same for the released curvature, which counts lone triangles in place of cycles."""
        ric = FORMULAS["released"]
        within = self.block("C", "C").any(1)
        # The edges i–c and j–c that lie in no other triangle.
        alone_i = np.asarray(~(within | self.block("C", "I").any(1)), dtype=bool)
        alone_j = np.asarray(~(within | self.block("C", "J").any(1)), dtype=bool)
        lone = int(alone_i.sum() + alone_j.sum())
        triangles = len(self.groups["C"])
        value = float(ric(*map(np.array, (self.d_i, self.d_j, triangles, 0, 0, lone))))

        def joined(mine: str, theirs: str, alone: NDArray[np.bool_], d: int, e: int) -> Numbers:
            common = self.block("C", theirs)
            ended = (alone[:, None] & common).sum(0)
            first = ~(self.block(mine, theirs).any(0) | common.any(0))
            second = ~(self.block(theirs, theirs).any(0) | common.any(0))
            count = lone - ended + first + second
            return ric(np.full(len(count), d + 1), e, triangles + 1, None, None, count)

        by_j = joined("I", "J", alone_i, self.d_i, self.d_j)
        by_i = joined("J", "I", alone_j, self.d_j, self.d_i)
        either = alone_i.astype(int) + alone_j

        def after(ended: NDArray[np.int64]) -> Numbers:
            return ric(self.d_i, self.d_j, triangles, None, None, lone - ended)

        shape_i, shape_j = len(self.groups["I"]), len(self.groups["J"])
        blocks: dict[tuple[str, str], Numbers | None] = {
            ("I", "J"): None,
            ("I", "C"): after(np.tile(alone_i.astype(int), (shape_i, 1))),
            ("C", "J"): after(np.tile(alone_j.astype(int)[:, None], (1, shape_j))),
            ("C", "C"): after(either[:, None] + either[None, :]),
        }
        return value, by_j, by_i, blocks


def _without_each(values: Integers) -> Integers:
    """For each place the largest of the values elsewhere, 0 without any."""
    if len(values) < 2:
        return np.zeros(len(values), dtype=np.int64)
    place = int(values.argmax())
    result = np.full(len(values), values[place])
    result[place] = np.delete(values, place).max()
    return result


class _Best:
    """The state with the highest lowest curvature so far, the later one of two alike."""

    def __init__(self, flow: RicciFlow) -> None:
        self.before = self.lowest = float(flow.values.min(initial=np.inf))
        self.keys, self.directions = flow.graph.keys, flow.directions
        self.iterations = 0

    def see(self, flow: RicciFlow) -> None:
        """Keeps the state if it is no worse. Arrays are replaced at each change, never written."""
        if not len(flow.values):  # nothing is left whose curvature could be compared
            return
        lowest = float(flow.values.min())
        if lowest >= self.lowest:
            self.lowest, self.keys, self.directions = lowest, flow.graph.keys, flow.directions


def run_flow(flow: RicciFlow, settings: SDRF) -> _Best:
    """Rewires a graph; the best state that was seen."""
    random = np.random.default_rng(settings.seed)
    best = _Best(flow)
    while best.iterations < settings.iterations and len(flow.values):
        changed = False
        place = int(flow.values.argmin())
        i, j = int(flow.graph.first[place]), int(flow.graph.second[place])
        ks, ls, gains = flow.candidates(i, j)
        if len(ks):
            chosen = _drawn(gains, settings.temperature, random)
            flow.add(int(ks[chosen]), int(ls[chosen]), int(flow.directions[place]))
            changed = True
        highest = int(flow.values.argmax())
        if settings.remove_above is not None and flow.values[highest] > settings.remove_above:
            flow.remove(highest)
            changed = True
        if not changed:
            break
        best.iterations += 1
        best.see(flow)
    return best


def _drawn(gains: Numbers, temperature: float | None, random: np.random.Generator) -> int:
    """A place by softmax(τ x): the largest of τ x and noise of Gumbel's distribution."""
    if temperature is None:
        return int(gains.argmax())
    return int((temperature * gains + random.gumbel(size=len(gains))).argmax())
