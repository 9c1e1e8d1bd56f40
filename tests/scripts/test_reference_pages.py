"""The pages of commands and settings are those of the program, and none is missing."""

import importlib.util
from pathlib import Path

import pytest
from typer.main import get_command

from adgn.cli.app import app
from adgn.training import TASKS, TrainConfig

ROOT = Path(__file__).resolve().parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["document_cli", "document_configuration"])
def test_the_page_is_what_the_program_says(name):
    """Otherwise run the script with `--write`."""
    script = load(name)
    assert script.PAGE.read_text(encoding="utf-8") == script.page()


def test_every_command_and_option_is_on_its_page():
    script = load("document_cli")
    text = script.PAGE.read_text(encoding="utf-8")
    found = dict(script.commands(get_command(app)))
    assert {"adgn fit", "adgn study show", "adgn demo transfer"} <= set(found)
    for name, command in found.items():
        part = text.split(f"\n## {name}\n")[1].split("\n## ")[0]
        for option in command.params:
            for word in option.opts if option.param_type_name == "option" else ():
                assert f"`{word}`" in part, (name, word)


@pytest.mark.parametrize("task", list(TASKS))
def test_every_setting_is_on_its_page(task):
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    config = TrainConfig(task)
    for section in type(config).model_fields:
        value = getattr(config, section)
        for key in getattr(type(value), "model_fields", [""]):
            assert f"`{section}{f'.{key}' if key else ''}`" in text
