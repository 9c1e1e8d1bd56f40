"""Graphs for the tests of transforms, and the definition of curvature spelt out."""

import itertools

import networkx
import torch
from hypothesis import strategies as st


def edges_of(graph):
    """The edges of a NetworkX graph with nodes 0, 1, …, each once."""
    pairs = list(graph.edges())
    return torch.tensor(pairs, dtype=torch.long).view(-1, 2).t().contiguous()


def numbered(graph):
    return networkx.convert_node_labels_to_integers(graph, ordering="sorted")


@st.composite
def simple_graphs(draw, max_nodes=9):
    """Random simple graphs, sparse and dense ones."""
    nodes = draw(st.integers(2, max_nodes))
    pairs = list(itertools.combinations(range(nodes), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True))
    graph = networkx.Graph(chosen)
    graph.add_nodes_from(range(nodes))
    return graph


def by_counting(graph, i, j):
    """The curvature of an edge from its definition, by sets."""
    of_i, of_j = set(graph[i]), set(graph[j])
    low, high = sorted((len(of_i), len(of_j)))
    if low == 1:
        return 0.0

    def cycles(near, far, a, b):
        # For each neighbour of a alone, the ends w of 4-cycles a-k-w-b without diagonals.
        found = {k: (set(graph[k]) & far) - near - {a} for k in near - far - {b}}
        return {k: w for k, w in found.items() if w}

    first, second = cycles(of_i, of_j, i, j), cycles(of_j, of_i, j, i)
    most = max((len(w) for w in [*first.values(), *second.values()]), default=1)
    common = len(of_i & of_j)
    return (
        2 / len(of_i)
        + 2 / len(of_j)
        - 2
        + 2 * common / high
        + common / low
        + (len(first) + len(second)) / (most * high)
    )


def as_code(graph, i, j):
    """What the released code computes, with the square of the adjacency matrix."""
    nodes = sorted(graph)
    a = torch.from_numpy(networkx.to_numpy_array(graph, nodes))
    square = a @ a
    d_i, d_j = a[i].sum(), a[:, j].sum()
    found = [float(v) for v in a[:, j] * (square[i] - a[i]) if v > 0]
    found += [float(v) for v in a[i] * (square[:, j] - a[:, j]) if v > 0]
    low, high = min(d_i, d_j), max(d_i, d_j)
    value = 2 / high + 2 / low - 2 + (2 / high + 1 / low) * square[i, j]
    return float(value + len(found) / (high * max(found)) if found else value)
