import math

import pytest

from adgn.nn import available_models, build_model, model_spec
from adgn.nn.registry import FAMILIES


def size(name, family):
    return math.prod(len(values) for values in model_spec(name).search_spaces[family].values())


@pytest.mark.parametrize(
    ("name", "family", "configurations"),
    [
        ("adgn", "property", 4 * 3 * 4 * 4),
        ("adgn", "benchmarks", 3 * 7 * 3 * 5 * 5),
        ("adgn", "heterophily", 3 * 4 * 4 * 2 * 2 * 2 * 4),
        ("adgn", "trees", 3 * 2),
        ("gcn", "property", 4 * 3),
        ("gat", "benchmarks", 3 * 7 * 3),
        ("gcnii", "property", 4 * 3 * 3),
        ("dgc", "property", 4 * 3 * 4),
        ("grand", "benchmarks", 3 * 7 * 3 * 5),
    ],
)
def test_sizes_of_the_papers_grids(name, family, configurations):
    assert size(name, family) == configurations


@pytest.mark.parametrize("name", available_models())
def test_epsilon_and_gamma_belong_to_those_that_have_them(name):
    spec = model_spec(name)
    for space in spec.search_spaces.values():
        assert ("model.gamma" in space) == (name == "adgn")
        assert ("model.epsilon" in space) == (name in {"adgn", "dgc", "grand"})


@pytest.mark.parametrize("name", available_models())
@pytest.mark.parametrize("family", FAMILIES)
def test_every_value_builds_a_model(name, family):
    sizes = {"num_layers": 2, "hidden_channels": 8}
    for key, values in model_spec(name).search_spaces[family].items():
        part, setting = key.split(".")
        assert values, key
        if part == "optimizer":
            assert setting in {"lr", "weight_decay"}
            assert all(isinstance(value, float) and value > 0 for value in values)
            continue
        assert part == "model"
        for value in values:
            build_model(name, 3, out_channels=2, **{**sizes, setting: value})


def test_changing_one_models_space_leaves_the_others():
    layers = model_spec("gcn").search_spaces["property"]["model.num_layers"]
    assert layers is not model_spec("gat").search_spaces["property"]["model.num_layers"]
