import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from adgn.nn import available_models
from adgn.training import (
    TASKS,
    ConfigError,
    TrainConfig,
    parse_setting,
    read_config,
    resolve_config,
    to_toml,
)
from adgn.training.config import config_differences, merged


def test_property_defaults_are_the_papers():
    config = TrainConfig("diameter")
    assert (config.optimizer.name, config.optimizer.lr, config.optimizer.weight_decay) == (
        "adam",
        0.003,
        1e-6,
    )
    assert (config.loop.batch_size, config.loop.max_epochs, config.stopping.patience) == (
        512,
        1500,
        100,
    )
    assert (config.model.hidden_channels, config.model.num_layers, config.model.readout) == (
        30,
        20,
        "mlp",
    )
    assert config.seed == 41


def test_node_defaults_are_the_papers():
    cs, texas = TrainConfig("cs"), TrainConfig("texas")
    assert (cs.optimizer.name, cs.optimizer.weight_decay) == ("adamw", 0.1)
    assert (cs.loop.max_epochs, cs.stopping.patience, cs.stopping.ties) == (10000, 50, True)
    assert (texas.optimizer.name, texas.optimizer.weight_decay) == ("adam", 0.01)
    assert (texas.loop.max_epochs, texas.stopping.patience) == (1500, 100)


@pytest.mark.parametrize(
    ("radius", "passes", "epochs", "batch"),
    [(2, 1000, 50, 64), (3, 100, 500, 64), (5, 100, 500, 1024), (8, 100, 500, 2048)],
)
def test_tree_defaults_follow_the_radius(radius, passes, epochs, batch):
    config = TrainConfig(task={"name": "tree-neighbors-match", "radius": radius})
    assert config.model.num_layers == radius + 1
    assert config.loop.passes_per_epoch == passes
    assert config.loop.max_epochs == epochs
    assert config.loop.batch_size == batch
    assert (config.schedule.name, config.schedule.factor, config.schedule.patience) == (
        "plateau",
        0.5,
        10,
    )
    assert (config.stopping.split, config.stopping.target) == ("train", 1.0)


@pytest.mark.parametrize("task", list(TASKS))
@pytest.mark.parametrize("model", available_models())
def test_every_model_has_a_configuration_for_every_task(task, model):
    config = TrainConfig(task, model={"name": model})
    assert config.task.name == task
    assert config.model.name == model


def test_given_settings_go_before_defaults_and_the_rest_stays():
    config = TrainConfig("sssp", optimizer={"lr": 0.1}, model={"epsilon": 0.5})
    assert (config.optimizer.lr, config.optimizer.weight_decay) == (0.1, 1e-6)
    assert (config.model.options["epsilon"], config.model.options["gamma"]) == (0.5, 0.1)


def test_none_is_a_word_where_a_setting_may_be_absent():
    config = TrainConfig("sssp", stopping={"patience": "none"}, loop={"clip_norm": "none"})
    assert config.stopping.patience is None
    assert config.loop.clip_norm is None
    with pytest.raises(ValidationError):
        TrainConfig("sssp", loop={"max_epochs": "none"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": "ssp"}, "task='ssp' is not known. Did you mean 'sssp'"),
        ({"task": "sssp", "model": {"name": "gcni"}}, "'gcni' is not known. Did you mean 'gcnii'"),
        (
            {"task": "sssp", "model": {"epsilonn": 1}},
            "'epsilonn' for the model 'adgn'. Did you mean",
        ),
        ({"task": "sssp", "model": {"num_layer": 1}}, "Did you mean 'num_layers'"),
        ({"task": "sssp", "optimiser": {}}, "Did you mean 'optimizer'"),
        ({"task": "sssp", "loop": {"max_epoch": 2}}, "Did you mean 'max_epochs'"),
        ({"task": "sssp", "lr": 0.1}, "Did you mean 'optimizer.lr'"),
        ({"task": "sssp", "learning_rate": 0.1}, "Did you mean 'optimizer.lr'"),
        ({"task": "sssp", "optimizer": {"learning_rate": 0.1}}, "Did you mean 'lr'"),
        ({"task": "sssp", "model": {"name": "gnc"}}, "Did you mean 'gcn'"),
        ({"task": {"name": "cs", "radius": 3}}, "unknown key 'radius'"),
        ({"task": "sssp", "optimizer": {"lr": -1}}, "greater than 0"),
        ({"task": "sssp", "optimizer": {"lr": float("nan")}}, "finite"),
        ({"task": "sssp", "optimizer": {"momentum": 0.5}}, "has no effect with 'adam'"),
        ({"task": "sssp", "device": "gpu"}, "device='gpu' is not known"),
        ({"task": "sssp", "seed": -1}, "greater than or equal to 0"),
        ({"task": "sssp", "model": {"epsilon": -1.0}}, "epsilon"),
        ({"task": "sssp", "model": {"phi": object()}}, "names and numbers"),
        ({}, "task is missing"),
        ({"task": {"radius": 3}}, "task.name is missing"),
    ],
)
def test_wrong_settings_are_told_with_the_nearest_right_one(settings, message):
    with pytest.raises(ValidationError, match=message.replace("(", r"\(")):
        TrainConfig(**settings)


def test_configurations_do_not_change():
    with pytest.raises(ValidationError, match="frozen"):
        TrainConfig("sssp").seed = 3


def test_merging_leaves_its_arguments_as_they_are():
    base, over = {"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}
    assert merged(base, over) == {"a": {"b": 3, "c": 2}}
    assert base == {"a": {"b": 1, "c": 2}}


def test_a_configuration_may_name_a_device_of_another_machine():
    assert TrainConfig("sssp", device="cuda:99").device == "cuda:99"


@pytest.mark.parametrize(
    "settings",
    [
        {"loop": {"max_epochs": True}},
        {"loop": {"max_epochs": "7"}},
        {"loop": {"batch_size": 7.0}},
        {"seed": 3.0},
        {"stopping": {"ties": "no"}},
        {"stopping": {"ties": 1}},
        {"stopping": {"patience": False}},
        {"model": {"num_layers": 2.0}},
        {"optimizer": {"lr": "0.1"}},
        {"optimizer": {"lr": True}},
        {"task": {"name": "sssp", "train": [True, "64"]}},
        {"task": {"name": "texas", "largest_component": "yes"}},
        {"task": {"name": "tree-neighbors-match", "radius": "3"}},
        {"task": {"name": "graph-transfer", "distance": 3.0}},
    ],
)
def test_values_of_another_type_are_refused_rather_than_read_as_the_right_one(settings):
    with pytest.raises(ValidationError, match="should be a valid"):
        TrainConfig(**{"task": "sssp", **settings})


def test_a_whole_number_will_do_for_a_real_one_and_a_list_for_a_pair():
    config = TrainConfig({"name": "sssp", "train": [2, 64]}, optimizer={"lr": 1})
    assert (config.optimizer.lr, config.task.train) == (1.0, (2, 64))
    assert isinstance(config.optimizer.lr, float)


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@pytest.mark.parametrize("task", list(TASKS))
@pytest.mark.parametrize("model", ["adgn", "gcn"])
def test_toml_comes_back_as_the_same_configuration(tmp_path, task, model):
    config = TrainConfig(task, model={"name": model}, stopping={"patience": None})
    path = tmp_path / "config.toml"
    path.write_text(to_toml(config), encoding="utf-8")
    assert resolve_config(path) == config
    assert to_toml(resolve_config(str(path))) == to_toml(config)


@given(
    st.text(max_size=8),
    st.floats(0, 1, exclude_max=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
)
def test_strange_values_survive_toml(text, number, numbers):
    options = {"phi_kwargs": {"key": text, "numbers": numbers}}
    config = TrainConfig("sssp", model={"dropout": number, **options})
    assert resolve_config(tomllib.loads(to_toml(config))) == config


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.b=3", {"a": {"b": 3}}),
        ("a.b = 1e-3", {"a": {"b": 0.001}}),
        ("a.b=true", {"a": {"b": True}}),
        ("a.b=gcn", {"a": {"b": "gcn"}}),
        ("a.b='x=y'", {"a": {"b": "x=y"}}),
        ("seed=7", {"seed": 7}),
        ("a.b=", {"a": {"b": ""}}),
    ],
)
def test_settings_of_the_command_line(text, value):
    assert parse_setting(text) == value


@pytest.mark.parametrize("text", ["a.b", "=3", "a..b=3", ""])
def test_what_is_no_setting_is_refused(text):
    with pytest.raises(ConfigError, match="is not a setting; write key=value"):
        parse_setting(text)


@pytest.mark.parametrize("digits", [20, 4000, 5000])
def test_integers_of_more_than_64_bits_are_refused(tmp_path, digits):
    number = "9" * digits
    path = tmp_path / "run.toml"
    for key in ("loop.max_epochs", "optimizer.lr", "task.distance", "seed"):
        with pytest.raises(ConfigError, match=f"{key} has an integer of more than 64 bits; give"):
            resolve_config("graph-transfer", parse_setting(f"{key}={number}"))
    with pytest.raises(ConfigError, match=r"task.train has an integer of more than 64 bits"):
        resolve_config("sssp", parse_setting(f"task.train=[2, -{number}]"))
    path.write_text(f'task = "sssp"\nseed = {number}')
    with pytest.raises(ConfigError, match=r"(seed|run.toml) has an integer of more than 64 bits"):
        resolve_config(path)


@pytest.mark.parametrize("depth", [50, 300, 900, 100_000])
def test_deeply_nested_values_are_refused(tmp_path, depth):
    path = tmp_path / "run.toml"
    for value in ("[" * depth + "]" * depth, "{a=" * depth + "1" + "}" * depth):
        with pytest.raises(ConfigError):
            resolve_config("sssp", parse_setting(f"model.act={value}"))
        path.write_text(f'task = "sssp"\nmodel.act = {value}')
        with pytest.raises(ConfigError):
            resolve_config(path)
    with pytest.raises(ConfigError):
        resolve_config("sssp", parse_setting("a." * depth + "b=1"))


def test_all_problems_are_named_at_once():
    with pytest.raises(ConfigError) as error:
        resolve_config("sssp", {"loop": {"max_epoch": 1}}, {"optimizer": {"lr": "fast"}})
    assert "loop: unknown key 'max_epoch'. Did you mean 'max_epochs'?" in str(error.value)
    assert "optimizer.lr: 'fast' is not valid" in str(error.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match="there is no configuration file"):
        read_config(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("seed = = 3")
    with pytest.raises(ConfigError, match="not valid TOML"):
        read_config(tmp_path / "bad.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot read"):
        read_config(tmp_path / "bytes.toml")


def test_later_overrides_go_first():
    config = resolve_config("sssp", {"seed": 1}, {"seed": 2})
    assert config.seed == 2
    assert resolve_config(config) is config
    assert resolve_config(config, {"seed": 3}).seed == 3


def test_differences_name_key_and_both_values():
    left, right = TrainConfig("sssp"), TrainConfig("sssp", seed=1, model={"name": "gcn"})
    found = config_differences(left.model_dump(), right.model_dump())
    assert "seed: 41, not 1" in found
    assert "model.name: 'adgn', not 'gcn'" in found
    assert config_differences(left.model_dump(), left.model_dump()) == []


def test_a_checked_configuration_is_not_checked_again():
    config = resolve_config("texas")
    assert resolve_config(config, {}) is config
