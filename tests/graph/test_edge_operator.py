import pytest
import torch
from hypothesis import given

from adgn.graph import EdgeOperator, GraphBlocks, edge_operator, graph_operator
from adgn.graph.adjacency import NORMALIZATIONS
from tests.graphs import CORNER_CASES, edges, graphs

ALL = pytest.mark.parametrize("normalization", NORMALIZATIONS)
LOOPED = edges((0, 1), (1, 2), (2, 2), (2, 2), (2, 0))


@ALL
@given(graph=graphs())
def test_it_is_the_same_matrix_as_the_sorted_operator(graph, normalization):
    weight = graph.weight(torch.float64)
    weight = weight if weight is None else weight.abs()
    x = graph.features(3)
    operator = edge_operator(graph.edge_index, weight, normalization=normalization, like=x)
    expected = graph_operator(
        graph.edge_index, weight, num_nodes=graph.num_nodes, normalization=normalization, like=x
    )
    torch.testing.assert_close(operator @ x, expected @ x)
    torch.testing.assert_close(operator @ x.expand(2, *x.shape), expected @ x.expand(2, *x.shape))


@ALL
def test_gradients_in_states_weights_and_mask(normalization):
    graph = CORNER_CASES["weighted"]
    weight = graph.edge_weight.clone().requires_grad_()
    mask = torch.linspace(0.1, 0.9, weight.numel(), dtype=torch.float64).requires_grad_()
    x = graph.features(2).requires_grad_()

    def product(x, weight, mask):
        return (
            edge_operator(graph.edge_index, weight, normalization=normalization, like=x, mask=mask)
            @ x
        )

    assert torch.autograd.gradcheck(product, (x, weight, mask))


def test_the_mask_weighs_messages_after_the_normalisation():
    x = torch.eye(3)
    mask = torch.tensor([0.5, 1.0, 0.25, 0.125, 0.0])
    whole = graph_operator(LOOPED, num_nodes=3, normalization="gcn", like=x).to_dense()
    masked = edge_operator(LOOPED, normalization="gcn", like=x, mask=mask) @ x
    expected = whole.clone()
    expected[1, 0] *= 0.5
    expected[0, 2] *= 0.0
    torch.testing.assert_close(masked, expected)  # self loops stay
    # Without a normalisation that replaces them self loops are edges as all others.
    summed = edge_operator(LOOPED, like=x, mask=mask) @ x
    assert summed[2, 2].item() == 0.375


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mask": torch.ones(3)}, r"edge mask has shape \[3\]; expected \[5\]"),
        ({"edge_weight": torch.ones(3)}, r"edge_weight has shape \[3\]"),
        (
            {"edge_weight": -torch.ones(5), "normalization": "mean"},
            "node 0 the degree -1; mean normalisation needs",
        ),
        (
            {"edge_weight": -2 * torch.ones(5), "normalization": "gcn"},
            "node 0 the degree -1; gcn normalisation needs",
        ),
    ],
)
def test_wrong_inputs_are_told(settings, message):
    with pytest.raises(ValueError, match=message):
        edge_operator(LOOPED, like=torch.zeros(3, 1), **settings)


def test_edges_are_validated_where_they_can_be_looked_at():
    with pytest.raises(ValueError, match="out of range for 2 nodes"):
        edge_operator(LOOPED, like=torch.zeros(2, 1))
    meta = edge_operator(LOOPED.to("meta"), like=torch.zeros(2, 1, device="meta"))
    assert (meta @ torch.zeros(2, 1, device="meta")).shape == (2, 1)


@pytest.mark.parametrize("form", ["operator", "matrix", "blocks"])
def test_other_forms_have_entries_but_no_edges_to_mask(form):
    x = torch.randn(3, 2)
    graph = {
        "operator": graph_operator(LOOPED, num_nodes=3),
        "matrix": torch.sparse_coo_tensor(LOOPED.flip(0), torch.ones(5), (3, 3)).to_sparse_csr(),
        "blocks": GraphBlocks(LOOPED, torch.tensor([0, 3])).select(torch.tensor([0])),
    }[form]
    operator = edge_operator(graph, like=x)
    assert isinstance(operator, EdgeOperator)
    torch.testing.assert_close(operator @ x, graph_operator(graph, num_nodes=3) @ x)
    assert edge_operator(operator, like=x) is operator
    with pytest.raises(ValueError, match=r"masks the edges of a \[2, E\] edge_index"):
        edge_operator(graph, like=x, mask=torch.ones(5))


def test_an_operator_takes_no_weights():
    with pytest.raises(ValueError, match="together with an operator"):
        edge_operator(graph_operator(LOOPED, num_nodes=3), torch.ones(5), like=torch.zeros(3, 1))


def test_under_autocast_sums_are_in_single_precision():
    x = torch.randn(3, 2).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        product = edge_operator(LOOPED, normalization="gcn", like=x) @ x
    assert product.dtype == torch.float32
