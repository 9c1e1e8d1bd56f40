import math

import pytest

from adgn.nn import available_models
from adgn.selection import named_space
from adgn.selection.errors import SpaceError
from adgn.selection.spaces import check_space
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
