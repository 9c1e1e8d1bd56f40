import math

import pytest

from adgn.nn import available_models
from adgn.selection import named_space
from adgn.selection.errors import SpaceError
from adgn.selection.spaces import check_space
from adgn.tasks import compact_space
from adgn.tasks.published_settings import authors_space, has_authors_space
from adgn.training import resolve_config

MODELS = [name for name in available_models() if has_authors_space(name)]
GRAPHS = ("chameleon", "squirrel", "actor", "cornell", "texas", "wisconsin")


@pytest.mark.parametrize("model", MODELS)
def test_spaces_are_small_and_valid(model):
    for task in GRAPHS:
        space = named_space("authors", task, model)
        settings = resolve_config(task, {"model": {"name": model}}).model_dump(mode="json")
        assert check_space(space, settings) == space
        assert 4 <= math.prod(map(len, space.values())) <= 16


# What the authors' code has for each graph: rate, weight decay, α, dropout while propagating.
GPRGNN = {
    "chameleon": (0.05, 0.0, 1.0, 0.7),
    "squirrel": (0.05, 0.0, 0.0, 0.7),
    "actor": (0.01, 0.0, 0.9, 0.5),
    "cornell": (0.05, 5e-4, 0.9, 0.5),
    "texas": (0.05, 5e-4, 1.0, 0.5),
    "wisconsin": (0.05, 5e-4, 1.0, 0.5),
}


@pytest.mark.parametrize("graph", [*GRAPHS, "squirrel-filtered-directed"])
def test_gprgnn_has_the_authors_settings_of_a_graph(graph):
    space, keys = authors_space(graph, "gprgnn"), ("optimizer.lr", "optimizer.weight_decay")
    keys = (*keys, "model.alpha", "model.propagation_dropout")
    assert tuple(space[key][0] for key in keys) == GPRGNN[graph.partition("-")[0]]
    assert space["model.num_layers"] == [10]
    assert space["model.dropout"] == [0.5]
    assert compact_space(graph, "gprgnn") == space


@pytest.mark.parametrize("graph", GRAPHS)
def test_h2gcn_has_the_whole_search_of_its_paper(graph):
    space = authors_space(graph, "h2gcn")
    assert space["model.act"] == ["relu", None]
    assert space["model.dropout"] == [0.0, 0.5]
    assert space["model.num_layers"] == [1, 2]
    assert space["optimizer.weight_decay"] == [1e-3, 2e-5]
    assert math.prod(map(len, space.values())) == 16


@pytest.mark.parametrize("graph", GRAPHS)
def test_pairnorm_goes_deep_with_the_published_settings(graph):
    space = authors_space(graph, "pairnorm")
    assert space["model.num_layers"] == [2, 4, 8, 16, 32]
    first = {key: values[0] for key, values in space.items() if key != "model.num_layers"}
    assert first == {
        "optimizer.lr": 5e-3,
        "optimizer.weight_decay": 5e-4,
        "model.hidden_channels": 64,
        "model.act": "relu",
        "model.dropout": 0.6,
        "model.norm": "pair",
        "model.scale": 1.0,
    }


def test_published_settings_of_a_data_set_come_first_and_serve_its_repaired_graphs():
    squirrel = authors_space("squirrel", "gcnii")
    assert (squirrel["model.num_layers"][0], squirrel["model.dropout"][0]) == (2, 0.6)
    assert squirrel["optimizer.weight_decay"][0] == 1e-3
    assert authors_space("squirrel-filtered", "gcnii") == squirrel
    assert authors_space("texas", "gcnii") != squirrel
    squirrel["model.num_layers"].append(99)
    assert 99 not in authors_space("squirrel", "gcnii")["model.num_layers"]


def test_other_tasks_and_models_have_none():
    for task, model in (("cora", "gcn"), ("texas", "swan")):
        with pytest.raises(SpaceError, match=f"'authors' is not there for '{model}' on '{task}'"):
            named_space("authors", task, model)


@pytest.mark.parametrize("graph", ["chameleon", "squirrel", "actor", "texas"])
def test_gcnii_is_tried_in_both_variants_with_the_published_width(graph):
    space = authors_space(graph, "gcnii")
    assert space["model.shared_weights"] == [True, False]
    assert space["model.hidden_channels"] == [16 if graph in ("squirrel", "actor") else 64]
    assert space["model.alpha"] == [0.2 if graph == "chameleon" else 0.5]
