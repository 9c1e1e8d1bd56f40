"""Small graphs that tests of estimators learn from."""

import numpy as np

from adgn import Graph


def two_groups(nodes=120, seed=0, unlabelled=20, **options):
    """Edges mostly within two groups, features that hint at them, some labels unknown."""
    generator = np.random.default_rng(seed)
    group = generator.integers(0, 2, nodes)
    source, target = generator.integers(0, nodes, (2, 8 * nodes))
    kept = (group[source] == group[target]) | (generator.random(8 * nodes) < 0.2)
    x = np.stack([group + generator.normal(0, 1.5, nodes), generator.normal(0, 1, nodes)], axis=1)
    labels = [("left", "right")[g] for g in group]
    y = labels[: nodes - unlabelled] + [None] * unlabelled
    edges = np.stack([source[kept], target[kept]])
    return Graph.from_arrays(x, edges, y=y, **options), np.array(labels)


def many_graphs(graphs=60, seed=0, values=False):
    """Rings and stars, which edges alone tell apart; or, as values, the mean of a feature."""
    generator = np.random.default_rng(seed)
    owner, edges, x, y, first = [], [], [], [], 0
    for number in range(graphs):
        nodes = int(generator.integers(4, 8))
        ring = number % 2 == 0
        for node in range(1, nodes):
            edges.append((first + node - (1 if ring else node), first + node))
        if ring:
            edges.append((first + nodes - 1, first))
        own = generator.normal(number % 7, 1.0, (nodes, 1))
        x.append(np.concatenate([own, np.ones((nodes, 1))], axis=1))
        y.append([float(own.mean()), float(nodes)] if values else "ring" if ring else "star")
        owner += [number] * nodes
        first += nodes
    return Graph.from_arrays(
        np.concatenate(x),
        np.array(edges).T,
        y=y,
        directed=False,
        graph_of_node=owner,
        level="graph",
        target_name=["mean", "nodes"] if values else "shape",
    )
