import pytest
import torch

from adgn.nn import IntegerEmbedding, available_models
from adgn.training import TrainConfig
from adgn.training.models import build_network, check_model_options
from adgn.training.tasks import TaskSize


@pytest.mark.parametrize("name", available_models())
def test_every_model_is_built_from_a_configuration(name):
    config = TrainConfig("diameter", model={"name": name, "num_layers": 2, "hidden_channels": 4})
    network = build_network(config.model, TaskSize(0, 3, 3, 2, 1, "graph"))
    ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
    out = network(torch.randn(3, 2), ring, batch=torch.zeros(3, dtype=torch.long))
    assert out.shape == (1, 1)


def test_integers_get_an_embedding():
    config = TrainConfig("tree-neighbors-match").model
    network = build_network(config, TaskSize(0, 3, 3, 2, 9, embeddings=(9, 9)))
    assert isinstance(network.encoder, IntegerEmbedding)
    assert network.readout.bias is None
    assert network.parameter_counts()["encoder"] == 2 * 9 * config.hidden_channels


@pytest.mark.parametrize(("encoder", "embeddings"), [("embedding", None), ("linear", (3,))])
def test_encoder_must_fit_the_features(encoder, embeddings):
    config = TrainConfig("sssp", model={"encoder": encoder}).model
    with pytest.raises(ValueError, match="does not fit the task"):
        build_network(config, TaskSize(0, 3, 3, 1, 1, embeddings=embeddings))


def test_options_have_their_defaults_filled_in():
    options = check_model_options("adgn", {"epsilon": 0.5, "edge_dim": "none"})
    assert (options["epsilon"], options["gamma"], options["edge_dim"]) == (0.5, 0.1, None)
    assert (options["encoder"], options["dropout"]) == ("linear", 0.0)
    assert check_model_options("adgn", {"encoder": "none"})["encoder"] == "none"  # a name here
