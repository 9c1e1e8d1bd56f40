from typer.testing import CliRunner

from adgn.cli.app import app
from adgn.nn import available_models
from adgn.training import TASKS


def shown(*arguments):
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_task_and_model_is_listed():
    tasks, models = shown("tasks"), shown("models")
    assert all(f"\n{name} " in tasks for name in TASKS)
    assert all(f"\n{name} " in models for name in available_models())


def test_settings_of_a_task_with_its_defaults():
    text = shown("tasks", "tree-neighbors-match")
    assert "task.radius" in text
    assert "optimizer.lr" in text
    assert "protocol: Alon and Yahav" in text


def test_options_of_a_model():
    assert "model.alpha" in shown("models", "gcnii")
