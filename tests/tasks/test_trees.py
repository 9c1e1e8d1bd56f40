import pytest

from adgn.nn import available_models
from adgn.training import resolve_config, train


def test_trees_learn_to_answer():
    result = train(
        "tree-neighbors-match",
        task={"radius": 2, "permutations": 8},
        optimizer={"lr": 0.01},
        loop={"max_epochs": 6, "passes_per_epoch": 50},
        stopping={"target": 0.9},
    )
    assert result.scores["train"]["accuracy"] >= 0.9
    assert result.stopped == "target"
    assert result.constant["accuracy"] <= 0.5
    assert result.published.mean == 1.0
    assert set(result.scores) == {"train", "test"}


@pytest.mark.parametrize("radius", [2, 5])
@pytest.mark.parametrize("model", available_models())
def test_baselines_are_as_deep_as_the_trees_and_adgn_one_layer_deeper(model, radius):
    task = {"name": "tree-neighbors-match", "radius": radius}
    config = resolve_config({"task": task, "model": {"name": model}})
    assert config.model.num_layers == radius + (model == "adgn")
