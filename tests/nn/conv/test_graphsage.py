import pytest
import torch
import torch_geometric.nn as pyg

from adgn.nn.conv import SAGEConv


@pytest.mark.parametrize(
    "options",
    [{}, {"aggr": "sum"}, {"root_weight": False}, {"normalize": True}, {"bias": False}],
)
def test_equals_pyg(assert_same_as_pyg, x, edge_index, options):
    assert_same_as_pyg(SAGEConv(4, 5, **options), pyg.SAGEConv(4, 5, **options), x, edge_index)


@pytest.mark.parametrize("aggr", ["mean", "sum"])
def test_a_weight_of_two_is_an_edge_twice(x, edge_index, aggr):
    conv = SAGEConv(4, 5, aggr=aggr).double()
    weight = torch.ones(9, dtype=torch.float64)
    weight[3] = 2
    twice = torch.cat([edge_index, edge_index[:, 3:4]], dim=1)
    torch.testing.assert_close(conv(x, edge_index, weight), conv(x, twice))


def test_the_mean_does_not_mind_the_scale_of_weights(x, edge_index, edge_weight):
    conv = SAGEConv(4, 5).double()
    torch.testing.assert_close(
        conv(x, edge_index, edge_weight), conv(x, edge_index, 7 * edge_weight)
    )
