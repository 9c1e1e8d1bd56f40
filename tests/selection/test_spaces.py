import itertools

import pytest

from adgn.nn import available_models, model_spec, register_model, unregister_model
from adgn.nn.models.mlp import MLP
from adgn.selection import SpaceError, grid_points, grid_size, named_space, read_space
from adgn.selection.spaces import check_space, grid_point, random_points, resolve_space
from adgn.training import TASKS, TrainConfig, resolve_config

TASK_OF = {"property": "diameter", "benchmarks": "photo", "heterophily": "texas"}
TASK_OF |= {"trees": "tree-neighbors-match"}

# Products of the paper's tables: layers × sizes (× learning rates × …) × a model's own settings.
PROPERTY, BENCHMARKS = 4 * 3, 3 * 7 * 3
HETEROPHILY = 3 * 4 * 4 * 2 * 4
GRIDS = {
    "adgn": (PROPERTY * 16, BENCHMARKS * 25, HETEROPHILY * 4, 6),
    "gcn": (PROPERTY, BENCHMARKS, HETEROPHILY, 1),
    "gat": (PROPERTY, BENCHMARKS, HETEROPHILY, 1),
    "gin": (PROPERTY, BENCHMARKS, HETEROPHILY, 1),
    "graphsage": (PROPERTY, BENCHMARKS, HETEROPHILY, 1),
    "gcnii": (PROPERTY * 3, BENCHMARKS * 3, HETEROPHILY * 3, 1),
    "dgc": (PROPERTY * 4, BENCHMARKS * 5, None, 1),
    "grand": (PROPERTY * 4, BENCHMARKS * 5, None, 1),
}


@pytest.mark.parametrize("model", GRIDS)
def test_the_papers_grids_have_their_sizes(model):
    for task, size in zip(TASK_OF.values(), GRIDS[model], strict=True):
        if size is not None:
            assert grid_size(named_space("paper", task, model)) == size


def test_the_two_sizes_the_paper_speaks_of():
    assert grid_size(named_space("paper", "sssp", "adgn")) == 192
    assert grid_size(named_space("paper", "physics", "adgn")) == 1575


@pytest.mark.parametrize("model", available_models())
@pytest.mark.parametrize("task", [*TASK_OF.values(), "graph-transfer"])
def test_compact_spaces_are_small_and_valid(model, task):
    settings = resolve_config({"task": task, "model": {"name": model}}).model_dump(mode="json")
    name, space = resolve_space("compact", settings)
    assert name == "compact"
    assert 1 <= grid_size(space) <= 48


def with_values(settings, point):
    """The settings with some values by their dotted keys."""
    changed = {
        name: dict(part) if isinstance(part, dict) else part for name, part in settings.items()
    }
    for key, value in point.items():
        section, _, option = key.partition(".")
        changed[section][option] = value
    return changed


@pytest.mark.parametrize("model", available_models())
@pytest.mark.parametrize("task", TASK_OF.values())
def test_every_value_of_the_papers_grids_makes_a_configuration(model, task):
    settings = resolve_config({"task": task, "model": {"name": model}}).model_dump(mode="json")
    name, space = resolve_space("paper", settings)
    assert (name, space) == ("paper", named_space("paper", task, model))
    first = {key: values[0] for key, values in space.items()}
    for key, values in space.items():
        section, _, option = key.partition(".")
        for value in values:
            config = TrainConfig(**with_values(settings, {**first, key: value}))
            assert config.model_dump(mode="json")[section][option] == value, key


def test_a_grid_is_the_product_of_its_lists():
    space = {"a": [1, 2], "b": ["x", "y", "z"], "c": [True]}
    points = list(grid_points(space))
    assert [tuple(point.values()) for point in points] == list(itertools.product(*space.values()))
    assert grid_point(space, 5) == points[5]


def test_random_points_are_distinct_and_grow():
    space = {"a": list(range(7)), "b": list(range(5))}
    points = [tuple(point.values()) for point in random_points(space, 20, 3)]
    assert len(set(points)) == 20
    assert points[:6] == [tuple(point.values()) for point in random_points(space, 6, 3)]
    assert points != [tuple(point.values()) for point in random_points(space, 20, 4)]
    assert len(list(random_points(space, 1000, 3))) == 35


def test_a_space_from_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('optimizer.lr = [0.1, 0.01]\n[model]\nact = ["tanh", "relu"]\n')
    space = {"optimizer.lr": [0.1, 0.01], "model.act": ["tanh", "relu"]}
    assert read_space(file) == space
    settings = resolve_config("texas").model_dump(mode="json")
    assert resolve_space(file, settings) == ("mine.toml", space)
    assert resolve_space(str(file), settings) == ("mine.toml", space)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({}, "the space is empty"),
        ({"optimizer.lr": []}, r"optimizer\.lr has an empty list"),
        ({"optimizer.lr": 0.1}, r"optimizer\.lr=0\.1 is not a list; write \[0\.1\]"),
        ({"optimizer.lr": [0.1, 0.1]}, "has a value twice"),
        ({"optimizer.lr": [0.1, -1.0]}, r"^optimizer\.lr: -1\.0 is not valid"),
        ({"optimizer.lrs": [0.1]}, r"optimizer\.lrs: unknown key 'lrs'. Did you mean 'lr'"),
        ({"model.epsilom": [0.1]}, r"model\.epsilom: unknown key 'epsilom'.* 'epsilon'"),
        ({"optimiser.lr": [0.1]}, "unknown key 'optimiser'. Did you mean 'optimizer'"),
        ({"model.act": [["tanh"]]}, r"model\.act: \['tanh'\] is not a number, a name"),
        ({"task.split": [0, 1]}, r"task\.split cannot be chosen from: it would change the problem"),
        ({"seed": [0, 1]}, "seeds belong to the protocol"),
        ({"model.name": ["gcn", "gat"]}, "start a study per model"),
    ],
)
def test_a_wrong_space_is_refused(space, message):
    with pytest.raises(SpaceError, match=message):
        check_space(space, resolve_config("texas").model_dump(mode="json"))


def test_unknown_names_and_files(tmp_path):
    settings = resolve_config("texas").model_dump(mode="json")
    with pytest.raises(SpaceError, match=r"space='compat' is not known. Did you mean 'compact'"):
        resolve_space("compat", settings)
    with pytest.raises(SpaceError, match=r"there is no file .*nothing\.toml"):
        resolve_space(tmp_path / "nothing.toml", settings)
    (tmp_path / "broken.toml").write_text("a = [")
    with pytest.raises(SpaceError, match="is not valid TOML"):
        resolve_space(tmp_path / "broken.toml", settings)
    with pytest.raises(SpaceError, match=r"'adgn' on 'graph-transfer', .* use 'compact'"):
        named_space("paper", "graph-transfer", "adgn")


def test_every_task_has_a_compact_space():
    for task in TASKS:
        assert grid_size(named_space("compact", task, "adgn")) > 1


@pytest.fixture
def bare():
    """A model that was registered without search spaces."""
    register_model("bare", options=model_spec("mlp").options)(MLP)
    yield "bare"
    unregister_model("bare")


@pytest.mark.parametrize("task", TASKS)
def test_a_model_without_search_spaces_has_a_compact_one(bare, task):
    settings = resolve_config({"task": task, "model": {"name": bare}}).model_dump(mode="json")
    _, space = resolve_space("compact", settings)
    assert grid_size(space) > 1


def test_a_model_without_search_spaces_has_none_of_the_paper(bare):
    with pytest.raises(SpaceError, match=r"'bare' on 'texas', of the family 'heterophily'"):
        named_space("paper", "texas", bare)
