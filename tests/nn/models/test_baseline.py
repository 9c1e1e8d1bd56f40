import pytest
import torch
from torch import nn

from adgn.nn import Model, build_model


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_norm_and_residual_follow_the_activation(graph, norm):
    """x ← norm(x + relu(conv(x))), as in Alon and Yahav's experiments."""
    model = build_model("gcn", 3, 4, 2, 2, norm=norm, residual=True, act="relu").double()
    x = model.encoder(graph.x)
    for layer, scale in zip(model.propagation.layers, model.propagation.norms, strict=True):
        assert isinstance(scale, nn.LayerNorm if norm == "layer" else nn.BatchNorm1d)
        x = scale(x + torch.relu(layer(x, graph.edge_index)))
    torch.testing.assert_close(model(graph.x, graph.edge_index), model.readout(x))


def test_a_class_checks_its_options_as_build_model_does():
    from adgn.nn.models import GCN

    with pytest.raises(ValueError, match="gcn has no option 'alpha'"):
        GCN(3, 4, 2, 2, alpha=0.1)
    assert isinstance(build_model("gcn", 3, 4, 2, 2), GCN)


@pytest.mark.parametrize("num_layers", [0, -1, 2.0, True])
def test_num_layers_must_be_a_positive_integer(num_layers):
    with pytest.raises(ValueError, match=f"num_layers={num_layers!r} is not valid"):
        build_model("gcn", 3, 4, 2, num_layers)


def test_a_model_must_say_what_its_propagation_is():
    class Incomplete(Model):
        pass

    with pytest.raises(TypeError, match=r"abstract.*build_propagation"):
        Incomplete(3, 4, 2, 1)


def test_a_model_must_be_registered():
    class Nameless(Model):
        @staticmethod
        def build_propagation(channels, num_layers, options):
            return nn.Identity()

    with pytest.raises(TypeError, match=r"Nameless is not registered; .*@register_model"):
        Nameless(3, 4, 2, 1)
