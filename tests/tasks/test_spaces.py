import math

import pytest

from adgn.nn import available_models, build_model
from adgn.tasks import compact_space, paper_spaces, register_space
from adgn.training import TASKS, register_task, unregister_task

WITH_STEPS = {"adgn", "cgnn", "dgc", "gde", "grand", "graphcon", "pdegcn", "phdgn", "sonar"}
WITH_STEPS |= {"stable-cheb", "swan"}
FAMILIES = ("property", "benchmarks", "heterophily", "trees")


def size(name, family):
    return math.prod(len(values) for values in paper_spaces(name)[family].space.values())


@pytest.mark.parametrize("name", available_models())
def test_every_model_has_a_grid_with_its_source_for_every_family_of_the_paper(name):
    grids = paper_spaces(name)
    assert tuple(grids) == FAMILIES
    assert all(grid.space and grid.source.strip() for grid in grids.values())


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
    for space, _ in paper_spaces(name).values():
        assert ("model.gamma" in space) == (name in {"adgn", "stable-cheb", "swan"})
        assert ("model.epsilon" in space) == (name in WITH_STEPS)


@pytest.mark.parametrize("name", available_models())
@pytest.mark.parametrize("family", FAMILIES)
def test_every_value_builds_a_model(name, family):
    sizes = {"num_layers": 2, "hidden_channels": 8}
    for key, values in paper_spaces(name)[family].space.items():
        part, setting = key.split(".")
        assert values, key
        if part == "optimizer":
            assert setting in {"lr", "weight_decay"}
            assert all(isinstance(value, float) and value >= 0 for value in values)
            assert setting == "weight_decay" or min(values) > 0
            continue
        assert part == "model"
        for value in values:
            build_model(name, 3, out_channels=2, **{**sizes, setting: value})


def test_changing_a_space_leaves_what_is_registered():
    paper, compact = paper_spaces("gcn")["property"].space, compact_space("sssp", "gcn")
    for space in (paper, compact):
        space["model.num_layers"].append(99)
    assert 99 not in paper_spaces("gcn")["property"].space["model.num_layers"]
    assert 99 not in paper_spaces("gat")["property"].space["model.num_layers"]
    assert 99 not in compact_space("sssp", "gcn")["model.num_layers"]


def test_a_compact_space_keeps_a_model_s_own_settings():
    assert "model.alpha" in compact_space("sssp", "gcnii")
    assert "model.gamma" in compact_space("texas", "adgn")
    assert "model.gamma" not in compact_space("texas", "gcn")


def test_authors_settings_for_a_graph_come_first_in_its_compact_space():
    first = {key: values[0] for key, values in compact_space("cornell", "ggcn").items()}
    assert first == {
        "model.readout": "none",
        "model.first_dropout": "features",
        "optimizer.lr": 0.01,
        "optimizer.weight_decay": 1e-3,
        "model.num_layers": 6,
        "model.hidden_channels": 16,
        "model.dropout": 0.5,
        "model.decay": 0.7,
    }
    grid = paper_spaces("ggcn")["heterophily"].space
    assert all(value in grid[key] for key, value in first.items())


@pytest.mark.parametrize("name", available_models())
def test_where_nodes_listen_is_not_searched(name):
    spaces = [grid.space for grid in paper_spaces(name).values()]
    spaces += [compact_space(task, name) for task in TASKS]
    assert not any("model.direction" in space for space in spaces)


@pytest.fixture
def own_task():
    """Registers a task with these options of `register_task`."""

    def register(**options):
        register_task("own-task", objective="regression", **options)(lambda *arguments: None)

    yield register
    unregister_task("own-task")


def test_a_task_of_a_user_has_learning_rates_and_depths(own_task):
    own_task()
    keys = {"optimizer.lr", "model.num_layers", "model.alpha"}
    assert keys < set(compact_space("own-task", "gcnii"))


def test_a_task_of_a_user_may_say_what_a_compact_space_tries(own_task):
    own_task(compact={"optimizer.lr": [0.5], "model.heads": [1, 2]})
    assert compact_space("own-task", "gat") == {"optimizer.lr": [0.5], "model.heads": [1, 2]}
    assert compact_space("own-task", "gcn") == {"optimizer.lr": [0.5]}  # it has no heads


def test_a_user_registers_a_grid(monkeypatch):
    monkeypatch.setattr("adgn.tasks.spaces._REGISTERED", {})
    assert paper_spaces("gat") == {}
    register_space("gat", "heterophily", {"model.heads": [1, 2, 4]}, "mine")
    assert paper_spaces("gat")["heterophily"] == ({"model.heads": [1, 2, 4]}, "mine")
    assert compact_space("texas", "gat")["model.heads"] == [1, 2, 4]


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_compact_space_for_every_model(task):
    for name in available_models():
        assert math.prod(map(len, compact_space(task, name).values())) > 1
