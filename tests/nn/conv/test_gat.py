import pytest
import torch
import torch_geometric.nn as pyg

from adgn.nn.conv import GATConv


def attention_rows(conv, x, edge_index, edge_weight=None):
    """The matrix of attention weights: what the layer does to unit vectors."""
    with torch.no_grad():
        operator = conv.operator(x, edge_index, edge_weight)
        csr = operator.pattern.csr
        sent = conv.lin(x).view(-1, conv.heads, conv.out_channels)
        shares = conv._attention(sent, csr.row.long(), csr.col.long(), operator.value.unsqueeze(-1))
        dense = x.new_zeros(len(x), len(x))
        dense[csr.row.long(), csr.col.long()] = shares[:, 0]
        return dense


def test_attention_of_a_node_sums_to_one(x, edge_index):
    conv = GATConv(4, 4).double()
    torch.testing.assert_close(
        attention_rows(conv, x, edge_index).sum(1), torch.ones(6, dtype=torch.float64)
    )


def test_edge_features_equal_pyg(x, edge_index):
    ours = GATConv(4, 6, heads=2, edge_dim=3).double()
    theirs = pyg.GATConv(4, 3, heads=2, edge_dim=3).double()
    theirs.load_state_dict(ours.state_dict())
    edge_attr = torch.rand(9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        ours(x, edge_index, edge_attr=edge_attr), theirs(x, edge_index, edge_attr)
    )


def test_an_edge_of_weight_zero_is_not_there(x, edge_index):
    conv = GATConv(4, 4).double()
    weight = torch.ones(9, dtype=torch.float64)
    weight[5] = 0
    kept = torch.tensor([0, 1, 2, 3, 4, 6, 7, 8])
    torch.testing.assert_close(conv(x, edge_index, weight), conv(x, edge_index[:, kept]))


def test_large_logits_do_not_overflow(x, edge_index):
    conv = GATConv(4, 4).double()
    out = conv(1e4 * x, edge_index)
    assert out.isfinite().all()


def test_attention_dropout_acts_while_training_only(x, edge_index):
    conv = GATConv(4, 4, attention_dropout=0.5).double()
    torch.manual_seed(0)
    assert not torch.equal(conv(x, edge_index), conv(x, edge_index))
    conv.eval()
    assert torch.equal(conv(x, edge_index), conv(x, edge_index))


def test_negative_weights(x, edge_index):
    weight = torch.ones(9, dtype=torch.float64)
    weight[2] = -1
    with pytest.raises(ValueError, match="edge_weight has negative entries"):
        GATConv(4, 4).double()(x, edge_index, weight)


def test_repr():
    assert repr(GATConv(4, 6, heads=2, edge_dim=3)) == "GATConv(4, 6, heads=2, edge_dim=3)"
