"""PairNorm's invariants, of one graph and of each graph of a batch, and where it is used."""

import pytest
import torch
import torch_geometric.nn as pyg
from hypothesis import given
from hypothesis import strategies as st

from adgn.nn import build_model
from adgn.nn.norms import PairNorm, apply_norm, build_norm

BATCH = torch.tensor([1, 0, 0, 2, 1, 1, 0, 1])  # graphs of three, four and one node, mixed up


def states(nodes, channels=3, seed=0, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(nodes, channels, dtype=torch.float64, generator=generator) + 5


def pair_norm_by_loops(x, mode, scale):
    """Straight from the paper, node by node."""
    centre = sum(x) / len(x)
    centred = [row - centre for row in x]
    mean = sum(float((row * row).sum()) for row in centred) / len(x)
    sizes = [mean if mode == "pair" else float((row * row).sum()) for row in centred]
    return torch.stack(
        [scale * row / (1e-6 + size) ** 0.5 for row, size in zip(centred, sizes, strict=True)]
    )


@pytest.mark.parametrize("mode", ["pair", "pair-si"])
@given(st.integers(1, 6), st.integers(0, 99), st.sampled_from([1e-3, 1.0, 100.0]))
def test_it_is_the_equation(mode, nodes, seed, size):
    x = states(nodes, seed=seed, scale=size)
    torch.testing.assert_close(PairNorm(mode, scale=2.5)(x), pair_norm_by_loops(x, mode, 2.5))


@given(st.integers(2, 9), st.floats(0.1, 10.0), st.integers(0, 99))
def test_means_sizes_and_distances_are_what_they_should_be(nodes, scale, seed):
    x = states(nodes, seed=seed)
    out = PairNorm(scale=scale)(x)
    size = float((x - x.mean(0)).square().sum(1).mean())
    shrunk = scale**2 * size / (size + 1e-6)  # what the small number in the root takes away
    torch.testing.assert_close(out.mean(0), torch.zeros(3).double(), rtol=0, atol=1e-9)
    assert float(out.square().sum(1).mean()) == pytest.approx(shrunk, rel=1e-9)
    assert float(torch.cdist(out, out).square().sum()) == pytest.approx(
        2 * nodes**2 * shrunk, rel=1e-9
    )


@pytest.mark.parametrize("mode", ["pair", "pair-si"])
def test_each_graph_of_a_batch_is_by_itself(mode):
    x = states(8)
    out = PairNorm(mode, scale=2.0)(x, BATCH, 4)  # the fourth graph has no nodes
    for graph in range(3):
        rows = torch.eq(BATCH, graph)
        torch.testing.assert_close(out[rows], pair_norm_by_loops(x[rows], mode, 2.0))
    torch.testing.assert_close(PairNorm(mode, scale=2.0)(x, BATCH), out)
    assert not torch.allclose(PairNorm(mode, scale=2.0)(x), out)


def test_leading_dimensions_are_further_states_of_the_same_nodes():
    x = torch.stack([states(8), states(8, seed=1)])
    norm = PairNorm()
    torch.testing.assert_close(norm(x, BATCH), torch.stack([norm(x[0], BATCH), norm(x[1], BATCH)]))


def test_pygs_layer_with_the_authors_epsilon_is_the_same():
    theirs = pyg.PairNorm(scale=1.5, eps=1e-6)
    x, ours = states(8, scale=1e-3), PairNorm(scale=1.5)
    torch.testing.assert_close(ours(x), theirs(x))
    torch.testing.assert_close(ours(x, BATCH), theirs(x, BATCH))


@pytest.mark.parametrize("mode", ["pair", "pair-si"])
def test_states_that_are_all_alike_stay_finite(mode):
    x = torch.ones(4, 2, dtype=torch.float64, requires_grad=True)
    out = PairNorm(mode)(x)
    assert (out == 0).all()
    assert torch.autograd.grad(out.sum(), x)[0].isfinite().all()
    assert torch.autograd.gradcheck(PairNorm(mode), (states(4).requires_grad_(), BATCH[:4]))


def test_names():
    assert build_norm("none", 3) is None
    x = states(4)
    assert apply_norm(None, x, None, None) is x
    torch.testing.assert_close(apply_norm(build_norm("pair", 3), x, None, None), PairNorm()(x))
    layer = build_norm("layer", 3).double()
    torch.testing.assert_close(apply_norm(layer, x, BATCH[:4], 3), layer(x))
    with pytest.raises(ValueError, match="mode='pairs' is not known"):
        PairNorm("pairs")
    with pytest.raises(ValueError, match="scale=0 is not valid"):
        PairNorm(scale=0)
    with pytest.raises(ValueError, match=r"batch has shape \[3\]"):
        PairNorm()(x, BATCH[:3])


@pytest.mark.parametrize(
    ("name", "option"), [("gcn", "norm"), ("gat", "norm"), ("mlp", "norm"), ("adgn", "block_norm")]
)
def test_stacks_and_blocks_take_it_for_each_graph(name, option):
    torch.manual_seed(0)
    model = build_model(name, 3, 4, 4, 2, readout="none", **{option: "pair"}).double()
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    out = model(states(8), edges, batch=torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])).detach()
    for rows in (out[:3], out[3:]):
        torch.testing.assert_close(rows.mean(0), torch.zeros(4).double(), rtol=0, atol=1e-9)
        assert float(rows.square().sum(1).mean()) == pytest.approx(1, abs=1e-2)
