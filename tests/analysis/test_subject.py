"""Runs and made-up models as subjects of analysis."""

from dataclasses import replace

import pytest
import torch

import adgn.training
from adgn._util.environment import NotEnoughMemoryError
from adgn.analysis.subject import load_run, untrained_subject


@pytest.fixture(scope="module")
def transfer_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "transfer"
    result = adgn.training.train(
        "graph-transfer",
        run_dir=folder,
        task={"distance": 3, "train": 16, "val": 4, "test": 4},
        model={"hidden_channels": 8, "num_layers": 4},
        loop={"max_epochs": 2},
    )
    return folder, result


def test_a_run_is_its_best_weights_on_a_test_graph(transfer_run):
    folder, result = transfer_run
    subject = load_run(folder, 2)
    assert (subject.num_layers, subject.hidden_channels) == (4, 8)
    weights = result.model.state_dict()
    assert all(
        torch.equal(value, weights[name]) for name, value in subject.model.state_dict().items()
    )
    found = subject.diagnose()
    assert found.growth.by_layer.numel() == 5
    assert found.gradients.loss >= 0
    other = load_run(folder, 3)
    assert not torch.equal(subject.x, other.x)


def test_the_loss_of_a_run_is_what_it_was_trained_with(transfer_run):
    folder, result = transfer_run
    losses = [load_run(folder, number).diagnose().gradients.loss for number in range(4)]
    # Each graph counts the same in the score of the test split.
    assert sum(losses) / 4 == pytest.approx(10 ** result.scores["test"]["log10_mse"], rel=1e-4)


def test_an_untrained_model_is_set_beside(transfer_run):
    subject = load_run(transfer_run[0])
    beside = subject.beside("gcn")
    assert beside.name == "gcn" and torch.equal(beside.x, subject.x)
    assert beside.diagnose().growth.by_layer.numel() == 5


@pytest.mark.parametrize("place", ["meta", torch.float64], ids=["device", "dtype"])
def test_a_model_beside_is_where_the_features_are(place):
    subject = untrained_subject("adgn", "ring", num_nodes=5)
    subject = replace(subject, x=subject.x.to(place))
    for parameter in subject.beside("gcn").model.parameters():
        assert (parameter.device, parameter.dtype) == (subject.x.device, subject.x.dtype)


def test_untrained_models_are_reproducible():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    one = untrained_subject("adgn", "random", num_nodes=7, options={"epsilon": 0.5}, seed=1)
    two = untrained_subject("adgn", "random", num_nodes=7, options={"epsilon": 0.5}, seed=1)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(one.x, two.x) and torch.equal(one.edge_index, two.edge_index)
    assert torch.equal(one.model.encoder.weight, two.model.encoder.weight)
    assert one.model.propagation.layers[0].epsilon == 0.5


def test_wrong_inputs_are_refused(transfer_run):
    with pytest.raises(ValueError, match="number=4 is out of range; test graphs are 0 to 3"):
        load_run(transfer_run[0], 4)
    with pytest.raises(ValueError, match=r"graph='rings' is not known\. Did you mean 'ring'"):
        untrained_subject("adgn", "rings")


@pytest.mark.parametrize(
    "size", [{"num_nodes": 10**8}, {"num_layers": 10**9}, {"hidden_channels": 10**8}]
)
def test_what_cannot_fit_is_refused_before_it_is_made(size):
    with pytest.raises(NotEnoughMemoryError, match=r"analysing adgn with .* GB are free"):
        untrained_subject("adgn", **size)
