"""Departures from the paper's protocol: each changes what it says, and nothing else."""

import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

from adgn.nn import build_model, unregister_model

OPTIONS = {"num_layers": 5, "phi": "gcn", "epsilon": 1.0, "gamma": 0.1}


@pytest.fixture
def script(monkeypatch):
    """The script; its model is known as long as the test runs."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    module = import_module("amazon_departures")
    yield module
    unregister_model("adgn-of-pyg")
    del sys.modules[module.__name__]


def weights(model):
    """The model's weights, by the names that A-DGN has for them."""
    found = model.state_dict().items()
    return {k.replace("propagation.layer.", "propagation.layers.0."): v for k, v in found}


def test_with_the_layer_of_pyg_the_network_is_the_same(script):
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(20, 6, generator=draw)
    theirs, ours = (build_model(name, 6, 8, 3, **OPTIONS) for name in ("adgn-of-pyg", "adgn"))
    ours.load_state_dict(weights(theirs))
    for edges in (60, 40):
        edge_index = torch.randint(20, (2, edges), generator=draw)
        torch.testing.assert_close(theirs(x, edge_index), ours(x, edge_index))


def test_every_change_is_one_of_the_settings_it_names(script):
    plain = script.config("photo", "none", 2)
    assert plain.task.split == 2 and plain.model.options["dropout"] == 0.0
    assert script.config("photo", "dropout 0.8", 2).model.options["dropout"] == 0.8
    assert script.config("photo", "weight decay 0.01", 2).optimizer.weight_decay == 0.01
    assert script.config("photo", "normalised features", 2).task.normalize
    assert script.config("photo", "PyG's layer", 2).model.name == "adgn-of-pyg"
    assert (
        script.config("photo", "first states from neighbours", 2).model.options["first_hops"] == 1
    )
    for change in script.CHANGES:
        config = script.config("computers", change, 0)
        assert config.model.num_layers == 5 and config.optimizer.lr == 0.01
