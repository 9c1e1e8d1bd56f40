import pytest

from adgn.experiments.plan import plan_cell
from adgn.selection import named_space
from adgn.selection.spaces import nested
from adgn.training import resolve_config


@pytest.mark.parametrize("model", ["ggnn", "gat", "gcn", "gin", "adgn"])
def test_selection_and_reproduction_train_the_same_network(model):
    task = {"name": "tree-neighbors-match", "radius": 4}
    space = named_space("paper", "tree-neighbors-match", model)
    first = nested({key: values[0] for key, values in space.items()})
    selected = resolve_config({"task": task, "model": {"name": model}}, first).model
    reproduced = plan_cell("trees", model, "radius-4", "laptop").base.model
    assert selected.num_layers == reproduced.num_layers
    if model != "adgn":
        assert selected == reproduced
