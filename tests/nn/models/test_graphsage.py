import pytest
import torch_geometric.nn as pyg

from adgn.nn import build_model


@pytest.mark.parametrize(
    "options", [{}, {"aggr": "sum"}, {"root_weight": False}, {"normalize": True}]
)
def test_equals_a_pyg_network(assert_same_as_pyg, options):
    model = build_model("graphsage", 3, 4, 2, 3, **options)
    assert_same_as_pyg(model, [pyg.SAGEConv(4, 4, **options) for _ in range(3)])
