import pytest
import torch

from adgn.graph import graph_operator
from adgn.graph.direction import OPERATOR_DIRECTIONS
from adgn.graph.edge_operator import multiply_op as multiply
from tests.graphs import edges

EDGES = edges((0, 1), (1, 2), (2, 2), (2, 0), (0, 1))
WEIGHT = torch.linspace(0.5, 1.5, 5, dtype=torch.float64)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", [(3, 2), (2, 3, 4)])
@pytest.mark.parametrize("direction", OPERATOR_DIRECTIONS)
def test_the_product_is_the_operators(direction, shape, transposed):
    x = torch.randn(shape, dtype=torch.float64)
    kind = {"normalization": "gcn", "direction": direction}
    dense = graph_operator(EDGES, WEIGHT, num_nodes=3, **kind).to_dense()
    expected = (dense.t() if transposed else dense) @ x
    torch.testing.assert_close(multiply(x, EDGES, WEIGHT, *kind.values(), transposed), expected)


def test_torch_finds_it_well_made():
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(multiply, (x, EDGES, WEIGHT, "gcn", "out", False), test_utils=checks)


def test_gradients_to_the_second_order():
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)

    def squared(x):
        return multiply(x, EDGES, None, "none", "in", False) ** 2

    assert torch.autograd.gradcheck(squared, x)
    assert torch.autograd.gradgradcheck(squared, x)


def test_the_graph_is_validated_when_it_runs():
    with pytest.raises(ValueError, match="out of range for 2 nodes"):
        multiply(torch.randn(2, 2), EDGES, None, "none", "in", False)
