import pytest
import torch

from adgn.nn import ADGN, build_model
from adgn.nn.models.adgn import AntiSymmetricPropagation
from adgn.nn.models.blocks import Blocks


def test_without_options_there_are_no_blocks():
    assert isinstance(ADGN(3, 4, 2, 5).propagation, AntiSymmetricPropagation)
    assert isinstance(ADGN(3, 4, 2, 5, block_residual=True).propagation, Blocks)


@pytest.mark.parametrize("act", [None, "tanh"])
@pytest.mark.parametrize("weight_sharing", [True, False])
def test_blocks_of_adgn_are_their_formula(graph, act, weight_sharing):
    torch.manual_seed(1)
    options = {"act": act, "weight_sharing": weight_sharing, "blocks": 2, "block_mlp": "tanh"}
    model = ADGN(3, 4, 2, 3, **options, block_residual=True, block_norm="layer").double()
    x = model.encode(graph.x)
    for block in model.propagation.blocks:
        h = x
        for number in range(3):
            conv = block.steps.layers[0 if weight_sharing else number]
            h = h + 0.1 * conv.rate(h, graph.edge_index)
        first, act_between, second = block.mlp
        assert isinstance(act_between, torch.nn.Tanh)
        x = block.norm(x + second(torch.tanh(first(h))))
    torch.testing.assert_close(model(graph.x, graph.edge_index), model.readout(x))


def test_a_block_of_linear_steps_without_an_mlp_is_linear(graph):
    def outputs(act):
        torch.manual_seed(1)
        options = {"act": act, "bias": False, "encoder": "linear_no_bias", "blocks": 2}
        model = ADGN(3, 4, 2, 3, **options, readout="linear_no_bias").double()
        return [model(scale * graph.x, graph.edge_index) for scale in (1.0, 2.0)]

    one, two = outputs(None)
    torch.testing.assert_close(2 * one, two)
    one, two = outputs("tanh")
    assert (2 * one - two).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["adgn", "mpssm", "sonar"])
def test_trajectories_have_all_steps_of_all_blocks(graph, name):
    model = build_model(name, 3, 4, 2, 3, blocks=2, block_mlp="tanh").double()
    x = model.encode(graph.x)
    states = model.propagation.trajectory(x, graph.edge_index)
    assert len(states) == 2 * 3 + 1
    torch.testing.assert_close(states[-1], model.propagation(x, graph.edge_index))


def test_blocks_hear_as_far_as_all_their_steps():
    path = torch.arange(9)
    edges = torch.stack([path, path + 1])
    x = torch.randn(10, 3, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    model = build_model("sonar", 3, 4, 2, 3, blocks=2, laplacian="none").double()
    (grad,) = torch.autograd.grad(model(x, edges)[9].sum(), x)
    assert grad[3].abs().sum() > 0
    assert (grad[:3] == 0).all()


def test_edge_features_reach_all_blocks(graph):
    torch.manual_seed(0)
    model = ADGN(3, 4, 2, 2, phi="gine", edge_dim=2, blocks=2, block_mlp="relu").double()
    attributes = torch.rand(10, 2, dtype=torch.float64)
    assert model(graph.x, graph.edge_index, edge_attr=attributes).shape == (7, 2)
    with pytest.raises(ValueError, match="edge_attr=None"):
        model(graph.x, graph.edge_index)


def test_batch_normalisation_normalises(graph):
    model = build_model("mpssm", 3, 4, 4, 2, block_norm="batch", readout="none").double()
    out = model(graph.x, graph.edge_index)
    torch.testing.assert_close(out.mean(0), torch.zeros(4, dtype=torch.float64))


def test_one_module_cannot_be_all_blocks():
    phi = torch.nn.Identity()
    with pytest.raises(ValueError, match=r"phi=Identity\(...\) is one module, but blocks=2"):
        ADGN(3, 4, 2, 2, phi=phi, blocks=2)


def test_wrong_options():
    with pytest.raises(ValueError, match="blocks=0 is not valid for sonar"):
        build_model("sonar", 3, 4, 2, 2, blocks=0)
    with pytest.raises(ValueError, match="act='tahn'"):
        build_model("sonar", 3, 4, 2, 2, block_mlp="tahn")
