import pytest
import torch
import torch_geometric.nn as pyg

from adgn.graph import attend
from adgn.nn.conv import GATConv


def attention_rows(conv, x, edge_index, edge_weight=None):
    """The matrix of attention weights: what the layer would do to unit vectors, were they sent."""
    with torch.no_grad():
        operator = conv.operator(x, edge_index, edge_weight)
        logits = conv._states(x)[:, conv.out_channels :]
        sent = torch.eye(len(x), dtype=x.dtype)
        return attend(operator, torch.cat([sent, logits], 1), heads=1)


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


def leading_source(dtype):
    """A layer whose logit is 1000 for node 0 as a source, and 0 for all others."""
    conv = GATConv(2, 2, bias=False).to(dtype)
    with torch.no_grad():
        conv.lin.weight.copy_(torch.eye(2))
        conv.att_src.copy_(torch.tensor([1.0, 0.0]).view(1, 1, 2))
        conv.att_dst.zero_()
    x = torch.tensor([[1000.0, 5.0], [0.0, 1.0], [0.0, 3.0]], dtype=dtype)
    return conv, x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_edge_of_weight_zero_does_not_silence_others_by_its_logit(dtype):
    conv, x = leading_source(dtype)
    edge_index = torch.tensor([[0, 1], [2, 2]])
    weight = torch.tensor([0.0, 1.0], dtype=dtype)
    out = conv(x, edge_index, weight)
    torch.testing.assert_close(out, conv(x, edge_index[:, 1:]))
    torch.testing.assert_close(out[2], torch.tensor([0.0, 2.0], dtype=dtype))


def test_a_node_whose_edges_all_have_weight_zero_hears_nobody():
    conv, x = leading_source(torch.float64)
    edge_index = torch.tensor([[0, 1, 2], [2, 2, 2]])  # its self loop too
    weight = torch.zeros(3, dtype=torch.float64)
    x.requires_grad_()
    out = conv(x, edge_index, weight)
    assert out[2].tolist() == [0, 0]
    gradients = torch.autograd.grad(out.square().sum(), [x, *conv.parameters()])
    assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("heads", [1, 2])
def test_gradients_with_edges_of_weight_zero(x, edge_index, heads):
    conv = GATConv(4, 4, heads=heads).double()
    silent = edge_index.flip(0)[:, :3]
    edge_index = torch.cat([edge_index, silent, torch.tensor([[5], [5]])], 1)
    weight = torch.linspace(0.5, 2, edge_index.size(1), dtype=torch.float64)
    weight[edge_index[1] == 5] = 0  # the last node hears nobody
    weight[1] = 0
    x = x.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: conv(x, edge_index, weight), x)
    learned = weight[weight > 0].clone().requires_grad_()

    def of_learned(learned):
        return conv(x, edge_index, weight.masked_scatter(weight > 0, learned))

    assert torch.autograd.gradcheck(of_learned, learned)


def test_the_gradient_of_a_weight_at_zero_is_that_from_above(x, edge_index):
    conv = GATConv(4, 4).double()
    weight = torch.ones(9, dtype=torch.float64)
    weight[5] = 0
    weight.requires_grad_()
    pull = torch.linspace(-1, 2, 24, dtype=torch.float64).view(6, 4)
    (gradient,) = torch.autograd.grad((conv(x, edge_index, weight) * pull).sum(), weight)
    with torch.no_grad():
        step = torch.zeros_like(weight)
        step[5] = 1e-7
        there, above = ((conv(x, edge_index, w) * pull).sum() for w in (weight, weight + step))
    torch.testing.assert_close(gradient[5], (above - there) / 1e-7, rtol=1e-5, atol=1e-7)


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
