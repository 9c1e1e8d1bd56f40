"""Which nodes are needed, layer by layer, against sets made by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adgn.graph import TwoWayOperator, edge_operator, graph_operator, needed, needed_nodes
from adgn.graph.needed import feature_rows
from tests.graphs import edges, graphs

PATH = edges((0, 1), (1, 2), (2, 3), (3, 4))


@pytest.fixture(autouse=True)
def whatever_the_share(monkeypatch, request):
    """Also where nothing is gained, but for tests of just that."""
    if "share" not in request.node.name:
        monkeypatch.setattr(needed, "LARGEST_SHARE", 1e9)
        monkeypatch.setattr(needed, "LEAST_SAVED", -1e9)


@given(graphs(), st.integers(1, 4), st.booleans(), st.data())
def test_the_nodes_are_those_that_can_reach(example, layers, both, data):
    size = example.num_nodes
    read = data.draw(st.lists(st.integers(0, size - 1), max_size=4))
    weight = example.weight(torch.float64)
    like = torch.empty(0, dtype=torch.float64)
    directions = ("in", "out") if both else ("in",)
    operators = [
        graph_operator(example.edge_index, weight, num_nodes=size, direction=one, like=like)
        for one in directions
    ]
    whole = TwoWayOperator(*operators) if both else operators[0]
    nodes = torch.tensor(read, dtype=torch.long)
    found = needed_nodes(whole, nodes, layers)
    sets = [set(read)]
    for _ in range(layers):
        heard = {
            source
            for node in sets[0]
            for operator in operators
            for source in operator.to_dense()[node].nonzero().view(-1).tolist()
        }
        sets.insert(0, sets[0] | heard)
    assert found.counts == tuple(map(len, sets))
    for count, expected in zip(found.counts, sets, strict=True):
        assert set(found.nodes[:count].tolist()) == expected
    assert found.nodes[found.read].tolist() == read
    for layer in range(layers):
        before, after = found.nodes[: found.counts[layer]], found.counts[layer + 1]
        parts = found.layer(layer)
        parts = (parts.inward, parts.outward) if both else (parts,)
        for part, operator in zip(parts, operators, strict=True):
            expected = operator.to_dense()[before][:, before]
            expected[after:] = 0
            if layer == 0:  # one operator serves all layers from the first one on
                assert torch.equal(part.to_dense(), expected)
            assert torch.equal(part.to_dense()[:after], expected[:after])
        later = found.between(layer, layers)
        assert later.counts == found.counts[layer:]


def tree(radius):
    """The operator of a binary tree with self loops whose nodes hear their children."""
    size = 2 ** (radius + 1) - 1
    children = [(child, (child - 1) // 2) for child in range(1, size)]
    return graph_operator(edges(*children, *((i, i) for i in range(size))), num_nodes=size)


def test_the_share_decides():
    root, large = torch.tensor([0]), tree(8)
    assert needed_nodes(large, root, 9).counts == (511, 511, 255, 127, 63, 31, 15, 7, 3, 1)
    assert needed_nodes(large, root, 40) is None  # the first 32 layers need all nodes
    assert needed_nodes(large, torch.arange(511), 9) is None
    assert needed_nodes(tree(4), root, 5) is None  # so few that nothing is gained


def test_it_is_worked_out_once_for_each_operator_nodes_and_depth():
    operator, nodes = graph_operator(PATH, num_nodes=5), torch.tensor([3])
    found = needed_nodes(operator, nodes, 2)
    assert needed_nodes(graph_operator(PATH, num_nodes=5), nodes, 2) is found
    assert needed_nodes(operator, nodes, 1).counts == (2, 1)
    assert needed_nodes(
        graph_operator(PATH, num_nodes=5, direction="out"), nodes, 2
    ).nodes.tolist() == [3, 4]
    nodes[0] = 1
    assert needed_nodes(operator, nodes, 2).nodes.tolist() == [1, 0]
    with torch.no_grad():
        operator.value.mul_(3)
    assert needed_nodes(operator, nodes, 2).operator.to_dense().max() == 3


def test_graphs_of_which_nothing_is_known_beforehand():
    nodes = torch.tensor([1])
    weight = torch.ones(4, requires_grad=True)
    assert needed_nodes(graph_operator(PATH, weight, num_nodes=5), nodes, 2) is None
    traced = edge_operator(PATH, like=torch.zeros(5, 1), normalization="none")
    assert needed_nodes(traced, nodes, 2) is None


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (torch.tensor([0, 5]), r"nodes\[1\] = 5 is out of range for 5 nodes"),
        (torch.tensor([-1]), r"nodes\[0\] = -1 is out of range for 5 nodes"),
        (torch.ones(5, dtype=torch.bool), r"torch.bool; .* pass mask.nonzero\(\).view\(-1\)"),
        (torch.zeros(1, 1, dtype=torch.long), r"nodes has shape \[1, 1\]"),
    ],
)
def test_wrong_nodes_are_named(nodes, message):
    with pytest.raises(ValueError, match=message):
        needed_nodes(graph_operator(PATH, num_nodes=5), nodes, 2)


@given(st.lists(st.integers(0, 4), max_size=7))
def test_rows_of_sparse_features(rows):
    x = torch.tensor([[0, 2, 0], [0, 0, 0], [1, 0, 3], [4, 5, 6], [0, 0, 7.0]])
    nodes = torch.tensor(rows, dtype=torch.long)
    assert torch.equal(feature_rows(x.to_sparse_csr(), nodes).to_dense(), x[nodes])
