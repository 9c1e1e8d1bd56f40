from contextlib import contextmanager

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric import EdgeIndex
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from adgn.graph import (
    EdgeLayout,
    SparsePattern,
    edge_list,
    graph_operator,
    set_backend,
    sparse_features,
)
from adgn.nn import build_model
from tests.graphs import CORNER_CASES, Example, edges, graphs


def dense_adjacency(graph: Example) -> torch.Tensor:
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    for node in range(graph.num_nodes):
        for source, weight in graph.neighbours(node):
            matrix[node, source] += weight
    return matrix


def build(graph: Example, normalization: str = "none", **kwargs) -> torch.Tensor:
    return graph_operator(
        graph.edge_index,
        graph.edge_weight,
        num_nodes=graph.num_nodes,
        normalization=normalization,
        like=torch.empty(0, dtype=torch.float64),
        **kwargs,
    ).to_dense()


@given(graphs())
def test_rows_weigh_the_incoming_edges(graph: Example):
    torch.testing.assert_close(build(graph), dense_adjacency(graph))


@given(graphs())
def test_the_laplacian_is_degrees_minus_adjacency(graph: Example):
    adjacency = dense_adjacency(graph)
    adjacency.fill_diagonal_(0)  # self loops cancel
    expected = torch.diag(adjacency.sum(1)) - adjacency
    torch.testing.assert_close(build(graph, "laplacian"), expected)


@given(graphs())
def test_the_symmetric_normalisation_divides_by_roots_of_degrees(graph: Example):
    adjacency = dense_adjacency(graph)
    scale = adjacency.sum(1).rsqrt().nan_to_num(posinf=0.0)
    torch.testing.assert_close(build(graph, "sym"), scale[:, None] * adjacency * scale)


@pytest.mark.parametrize("improved", [False, True])
@given(graph=graphs())
def test_gcn_normalisation_is_that_of_pyg(improved: bool, graph: Example):
    weight = graph.edge_weight
    if weight is None:  # PyG overlooks `improved` where no weights are given
        weight = torch.ones(graph.edge_index.size(1), dtype=torch.float64)
    index, value = gcn_norm(
        graph.edge_index,
        weight,
        graph.num_nodes,
        improved=improved,
        dtype=torch.float64,
    )
    expected = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    expected.index_put_((index[1], index[0]), value, accumulate=True)
    ours = build(graph, "gcn-improved" if improved else "gcn")
    torch.testing.assert_close(ours, expected)


@given(graph=graphs())
def test_skew_is_the_mean_less_its_transpose(graph: Example):
    mean = build(graph, "mean")
    torch.testing.assert_close(build(graph, "skew"), mean - mean.T)
    reverse = build(graph, "mean", direction="out")
    torch.testing.assert_close(build(graph, "skew", direction="out"), reverse - reverse.T)


@given(graphs(weighted=True))
def test_edge_list_edge_index_and_sparse_layouts_agree(graph: Example):
    for normalization in ("none", "gcn"):
        expected = build(graph, normalization)
        size = (graph.num_nodes, graph.num_nodes)
        edge_index = EdgeIndex(graph.edge_index, sparse_size=size)
        as_edge_index = graph_operator(
            edge_index, graph.edge_weight, num_nodes=graph.num_nodes, normalization=normalization
        )
        torch.testing.assert_close(as_edge_index.to_dense(), expected)
        if len(set(map(tuple, graph.edge_index.t().tolist()))) < graph.edge_index.size(1):
            # A matrix cannot say which of several self loops came last.
            continue
        coo = torch.sparse_coo_tensor(graph.edge_index.flip(0), graph.edge_weight, size)
        sums = coo.coalesce()
        dense = sums.to_dense()
        for matrix in (coo, sums, dense.to_sparse_csr(), dense.to_sparse_csc()):
            operator = graph_operator(
                matrix, num_nodes=graph.num_nodes, normalization=normalization
            )
            torch.testing.assert_close(operator.to_dense(), expected)


def test_int32_edges_are_taken():
    graph = CORNER_CASES["directed"]
    operator = graph_operator(graph.edge_index.int(), num_nodes=4)
    torch.testing.assert_close(operator.to_dense().double(), dense_adjacency(graph))


def test_an_operator_is_returned_as_it_is():
    operator = graph_operator(edges((0, 1)), num_nodes=2)
    assert graph_operator(operator, num_nodes=2) is operator


def test_weights_that_cancel_to_degree_zero_silence_the_node():
    weight = torch.tensor([-1.0, 1.0], requires_grad=True)
    operator = graph_operator(
        edges((0, 1), (1, 0)), weight, num_nodes=2, normalization="gcn"
    )  # node 1 receives -1 from node 0 and 1 from itself
    assert operator.to_dense()[1].tolist() == [0, 0]
    operator.to_dense().sum().backward()
    assert torch.isfinite(weight.grad).all()


def test_sparse_features_keep_their_values():
    x = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]]).to_sparse_csr()
    torch.testing.assert_close(sparse_features(x).to_dense(), x.to_dense())
    assert sparse_features(x) is sparse_features(x)


@pytest.mark.parametrize(
    ("edge_index", "error", "message"),
    [
        (torch.tensor([[0, 1], [1, 250]]), ValueError, r"edge_index\[1, 1\] = 250 is out of range"),
        (torch.tensor([[0, -2], [1, 0]]), ValueError, r"edge_index\[0, 1\] = -2 is out of range"),
        (torch.tensor([[0.0, 1.0], [1.0, 0.0]]), TypeError, r"dtype torch.float32.*\.long\(\)"),
        (torch.tensor([[True], [False]]), TypeError, "dtype torch.bool"),
        (torch.tensor([0, 1]), ValueError, r"shape \[2\]; expected \[2, num_edges\]"),
        (torch.zeros(3, 4, dtype=torch.long), ValueError, r"shape \[3, 4\]"),
        ([[0], [1]], TypeError, "edge_index is a list"),
        (torch.eye(2).to_sparse_csr(), ValueError, r"shape \[2, 2\]; expected \[3, 3\]"),
        (torch.eye(3, requires_grad=True).to_sparse_csr(), ValueError, "requires a gradient"),
    ],
)
def test_wrong_graphs_are_named(edge_index, error, message):
    with pytest.raises(error, match=message):
        graph_operator(edge_index, num_nodes=3)


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        (torch.ones(3), ValueError, r"edge_weight has shape \[3\]; expected \[2\]"),
        (torch.ones(2, 1), ValueError, r"edge_weight has shape \[2, 1\]"),
        (torch.ones(2, dtype=torch.float64), TypeError, "edge_weight has dtype torch.float64"),
        (torch.tensor([1.0, float("nan")]), ValueError, r"edge_weight\[1\] = nan is not finite"),
        (torch.ones(2, device="meta"), ValueError, "edge_weight is on meta"),
    ],
)
def test_wrong_weights_are_named(weight, error, message):
    with pytest.raises(error, match=message):
        graph_operator(edges((0, 1), (1, 0)), weight, num_nodes=2, like=torch.ones(1))


def test_weights_twice_are_refused():
    adjacency = torch.eye(2).to_sparse_csr()
    with pytest.raises(ValueError, match="pass one of the two"):
        graph_operator(adjacency, torch.ones(2), num_nodes=2)
    operator = graph_operator(adjacency, num_nodes=2)
    with pytest.raises(ValueError, match="pass one of the two"):
        graph_operator(operator, torch.ones(2), num_nodes=2)


def test_an_operator_of_another_size_or_dtype_is_refused():
    operator = graph_operator(edges((0, 1)), num_nodes=2)
    with pytest.raises(ValueError, match=r"shape \[2, 2\], but x has 3 nodes"):
        graph_operator(operator, num_nodes=3)
    with pytest.raises(TypeError, match="operator has dtype"):
        graph_operator(operator, num_nodes=2, like=torch.empty(0, dtype=torch.float64))


def test_unknown_normalisation_suggests_the_nearest():
    with pytest.raises(ValueError, match="Did you mean 'gcn'"):
        graph_operator(edges((0, 1)), num_nodes=2, normalization="gnc")


def test_negative_degrees_have_no_root():
    weight = torch.tensor([-3.0])
    with pytest.raises(ValueError, match="gives node 1 the degree -2"):
        graph_operator(edges((0, 1)), weight, num_nodes=2, normalization="gcn")


def test_an_edge_index_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"sparse_size=\(9, 9\), but x has 3 nodes"):
        graph_operator(EdgeIndex(edges((0, 1)), sparse_size=(9, 9)), num_nodes=3)


def test_block_sparse_matrices_are_named():
    with pytest.raises(TypeError, match=r"layout .*sparse_bsr"):
        graph_operator(torch.eye(4).to_sparse_bsr((2, 2)), num_nodes=4)


@contextmanager
def unchecked():
    """As for users: torch does not look at the sparse tensors that it makes."""
    torch.sparse.check_sparse_tensor_invariants.disable()
    yield
    torch.sparse.check_sparse_tensor_invariants.enable()


def damaged_matrices():
    one = torch.ones(1)
    outside = r"entry 0 is at row 0, column 5, outside of shape \[4, 4\]"
    with unchecked():
        return {
            "coo": (torch.sparse_coo_tensor([[0], [5]], one, (4, 4)), outside),
            "coo, a loop": (
                torch.sparse_coo_tensor([[5], [5]], one, (4, 4)),
                r"row 5, column 5, outside",
            ),
            "coo, negative": (torch.sparse_coo_tensor([[-1], [0]], one, (4, 4)), r"row -1"),
            "csr": (torch.sparse_csr_tensor([0, 1, 1, 1, 1], [5], one, (4, 4)), outside),
            "csc": (torch.sparse_csc_tensor([0, 1, 1, 1, 1], [5], one, (4, 4)), "row 5, column 0"),
            "csr, pointers beyond the end": (
                torch.sparse_csr_tensor([0, 900, 1, 1, 1], [0], one, (4, 4)),
                r"crow_indices\[2\] = 1 of the sparse matrix is not valid",
            ),
            "csr, pointers that end early": (
                torch.sparse_csr_tensor([0, 0, 0, 0, 0], [0], one, (4, 4)),
                r"crow_indices\[4\] = 0 of .* from 0 to the number of its entries, 1",
            ),
            "csc, pointers that start late": (
                torch.sparse_csc_tensor([1, 1, 1, 1, 1], [0], one, (4, 4)),
                r"ccol_indices\[0\] = 1",
            ),
        }


@pytest.mark.parametrize("serving", ["auto", "torch"])
@pytest.mark.parametrize("normalization", ["none", "gcn"])
@pytest.mark.parametrize("name", damaged_matrices())
def test_damaged_sparse_matrices_are_refused(name, normalization, serving):
    matrix, message = damaged_matrices()[name]
    with set_backend(serving):
        with pytest.raises(ValueError, match=message):
            graph_operator(matrix, num_nodes=4, normalization=normalization)
        with pytest.raises(ValueError, match=message):
            edge_list(matrix, 4, like=torch.zeros(4, 1))


@pytest.mark.parametrize("serving", ["auto", "torch"])
@pytest.mark.parametrize("name", [name for name in damaged_matrices() if name.startswith("csr")])
def test_damaged_sparse_features_are_refused(name, serving):
    matrix, message = damaged_matrices()[name]
    with set_backend(serving), pytest.raises(ValueError, match=message):
        sparse_features(matrix)
    model = build_model("adgn", 4, 4, 2, 1)
    with set_backend(serving), pytest.raises(ValueError, match=message):
        model(matrix, edges((0, 1)))


@pytest.mark.parametrize("serving", ["auto", "torch"])
def test_entries_outside_of_a_pattern_are_refused(serving):
    row, col = torch.tensor([0, 1]), torch.tensor([0, 3])
    with set_backend(serving), pytest.raises(ValueError, match="entry 1 is at row 1, column 3"):
        SparsePattern.from_entries(row, col, (2, 3))


@given(graphs(max_nodes=5, weighted=True))
def test_gradients_reach_the_edge_weights(graph: Example):
    if graph.edge_index.size(1) == 0:
        return
    for normalization in ("none", "gcn"):

        def entries(weight, normalization=normalization):
            operator = graph_operator(
                graph.edge_index, weight, num_nodes=graph.num_nodes, normalization=normalization
            )
            return operator.to_dense()

        weight = graph.edge_weight.clone().requires_grad_()
        assert torch.autograd.gradcheck(entries, weight)


def test_of_several_self_loops_the_last_counts():
    layout = EdgeLayout.build(*edges((1, 1), (0, 1), (1, 1)), 2, "gcn")
    operator = layout.operator(torch.tensor([5.0, 2.0, 7.0]), torch.float32)
    degree = torch.tensor([1.0, 9.0])  # node 1: 2 from node 0, 7 from itself
    assert torch.isclose(operator.to_dense()[1, 1], 7 / degree[1])


def test_repeated_edges_add_up():
    layout = EdgeLayout.build(*edges((0, 1), (0, 1)), 2, "none")
    operator = layout.operator(torch.tensor([2.0, 3.0]), torch.float32)
    assert operator.num_entries == 1
    assert operator.value.tolist() == [5.0]


@st.composite
def weighted_graphs(draw):
    num_nodes = draw(st.integers(1, 6))
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=12))
    weights = [draw(st.floats(0.1, 3.0)) for _ in edges]
    edge_index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t().contiguous()
    return num_nodes, edge_index, torch.tensor(weights, dtype=torch.float64)


def dense_sum(num_nodes, edge_index, edge_weight):
    dense = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    return dense.index_put((edge_index[1], edge_index[0]), edge_weight, accumulate=True)


@given(weighted_graphs())
def test_mean_divides_each_row_by_its_sum(graph):
    num_nodes, edge_index, edge_weight = graph
    operator = graph_operator(
        edge_index, edge_weight, num_nodes=num_nodes, normalization="mean"
    ).to_dense()
    plain = dense_sum(*graph)
    total = plain.sum(1, keepdim=True)
    expected = torch.where(total > 0, plain / torch.where(total > 0, total, 1.0), 0.0)
    torch.testing.assert_close(operator, expected)


@given(weighted_graphs())
def test_loops_fill_the_diagonal_and_nothing_else(graph):
    num_nodes, edge_index, edge_weight = graph
    operator = graph_operator(
        edge_index, edge_weight, num_nodes=num_nodes, normalization="loops"
    ).to_dense()
    plain = dense_sum(*graph)
    off_diagonal = ~torch.eye(num_nodes, dtype=torch.bool)
    torch.testing.assert_close(operator[off_diagonal], plain[off_diagonal])
    for node in range(num_nodes):
        own = edge_weight[(edge_index == node).all(0)]
        assert operator[node, node] == (own[-1] if len(own) else 1.0)


def test_gradients_reach_the_weights_of_a_mean():
    edge_index = torch.tensor([[0, 1, 2, 2], [1, 2, 1, 0]])
    weight = torch.tensor([1.0, 2.0, 0.5, 3.0], dtype=torch.float64, requires_grad=True)
    x = torch.rand(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def averaged(w):
        return graph_operator(edge_index, w, num_nodes=3, normalization="mean") @ x

    assert torch.autograd.gradcheck(averaged, weight)


def test_weights_that_cancel_give_a_mean_of_zero():
    edge_index = torch.tensor([[0, 2], [1, 1]])
    weight = torch.tensor([1.0, -1.0])
    operator = graph_operator(edge_index, weight, num_nodes=3, normalization="mean")
    assert torch.equal(operator.to_dense(), torch.zeros(3, 3))


def test_a_negative_sum_has_no_mean():
    weight = torch.tensor([-1.0])
    with pytest.raises(ValueError, match=r"gives node 1 the degree -1; mean normalisation needs"):
        graph_operator(torch.tensor([[0], [1]]), weight, num_nodes=2, normalization="mean")
