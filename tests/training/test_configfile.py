import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adgn.training import (
    TASKS,
    ConfigError,
    TrainConfig,
    parse_setting,
    read_config,
    resolve_config,
    to_toml,
)
from adgn.training.configfile import config_differences

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
