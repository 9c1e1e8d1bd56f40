import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.transforms import LargestConnectedComponents

from adgn.data import largest_component, load


@given(st.integers(1, 12), st.data(), st.booleans())
def test_equals_networkx_on_directed_graphs(n, data, sparse):
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    edges = data.draw(st.lists(pairs, max_size=12))
    x = torch.arange(2.0 * n).view(n, 2)
    graph = Data(
        x=x.to_sparse_csr() if sparse else x,
        edge_index=torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous(),
        y=torch.arange(n),
        train_mask=torch.arange(n) % 2 == 0,
        num_nodes=n,
    )
    network = nx.empty_graph(n)
    network.add_edges_from(edges)
    kept = sorted(max(nx.connected_components(network), key=lambda c: (len(c), -min(c))))
    part = largest_component(graph)
    assert part.node_id.tolist() == kept
    assert part.y.tolist() == kept
    assert torch.equal(part.x.to_dense(), x[kept])
    assert torch.equal(part.train_mask, graph.train_mask[kept])
    expected = [[kept.index(a), kept.index(b)] for a, b in edges if a in kept]
    assert part.edge_index.t().tolist() == expected


@pytest.mark.parametrize("name", ["photo", "texas"])
def test_equals_pyg_s_transform(data_root, name):
    part = load(name, data_root, features="dense", largest_component=True)
    expected = LargestConnectedComponents(connection="weak")(
        load(name, data_root, features="dense")
    )
    assert torch.equal(part.x, expected.x)
    assert torch.equal(part.edge_index, expected.edge_index)
    assert torch.equal(part.y, expected.y)


def test_edge_tensors_follow_their_edges():
    graph = Data(
        x=torch.zeros(4, 1),
        edge_index=torch.tensor([[0, 1, 2], [0, 2, 3]]),
        edge_attr=torch.tensor([7.0, 8.0, 9.0]),
        name="kept",
    )
    part = largest_component(graph)
    assert part.edge_attr.tolist() == [8.0, 9.0]
    assert part.name == "kept"
