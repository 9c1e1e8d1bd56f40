import math

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from adgn.data import PackedGraphs, constant_predictor_score
from adgn.data.property_values import compute_targets


@st.composite
def graph_batches(draw):
    n = draw(st.integers(1, 9))
    count = draw(st.integers(1, 3))
    seed = draw(st.integers(0, 2**32 - 1))
    density = draw(st.floats(0, 1))
    stream = np.random.default_rng(seed)
    upper = np.triu(stream.random((count, n, n)) < density, k=1)
    adjacency = (upper | upper.transpose(0, 2, 1)).astype(np.uint8)
    return adjacency, stream.random((count, n)), stream.integers(0, n, count)


@given(graph_batches())
def test_targets_equal_networkx(batch):
    adjacency, values, source = batch
    targets = compute_targets(adjacency, values, source)
    for g in range(len(source)):
        graph = nx.from_numpy_array(adjacency[g])
        lengths = dict(nx.all_pairs_shortest_path_length(graph))
        from_source = lengths[int(source[g])]
        assert targets["sssp"][g].tolist() == [from_source.get(u, 0) for u in graph]
        eccentricity = [max(lengths[u].values()) for u in graph]
        assert targets["eccentricity"][g].tolist() == eccentricity
        assert targets["diameter"][g] == max(eccentricity)
        assert targets["connected"][g] == nx.is_connected(graph)
        product = nx.laplacian_matrix(graph).toarray() @ values[g]
        np.testing.assert_allclose(targets["laplacian"][g], product, atol=1e-12)
        radius = max(abs(np.linalg.eigvals(adjacency[g].astype(float))))
        np.testing.assert_allclose(targets["spectral_radius"][g], radius, atol=1e-6)


def pack(targets):
    graphs = []
    for values in targets:
        y = torch.tensor(values).view(-1, 1)
        edges = torch.empty(2, 0, dtype=torch.long)
        graphs.append(Data(x=torch.zeros(len(values), 1), edge_index=edges, y=y))
    return PackedGraphs.from_data_list(graphs, y_level="node")


def test_constant_score_weighs_graphs_not_nodes_and_batches_as_the_paper_does():
    train = pack([[0.0, 0.0, 0.0], [4.0]])  # the mean over graphs is 2, over nodes 1
    test = pack([[2.0, 4.0]] * 512 + [[12.0]])
    score = constant_predictor_score(train, test)
    assert score.per_graph == pytest.approx(math.log10((512 * 2 + 100) / 513))
    assert score.paper == pytest.approx(math.log10((2 + 100) / 2))


def test_a_target_that_never_changes_scores_minus_infinity():
    score = constant_predictor_score(pack([[1.0]]), pack([[1.0]]))
    assert score.per_graph == score.paper == -math.inf
