import json

import pytest
import torch
from typer.testing import CliRunner

from adgn.cli.app import app
from adgn.training import read_config, resolve_config
from tests.selection.studies import InProcess

SETTINGS = ["--set", "task.distance=2", "--set", "task.train=12", "--set", "loop.max_epochs=2"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Calls the program in an empty folder; workers run in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("adgn.selection.api.LocalExecutor", lambda workers, threads: InProcess())
    threads = torch.get_num_threads()

    def call(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    yield call
    torch.set_num_threads(threads)


@pytest.fixture
def space(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("optimizer.lr = [0.1, 0.01]\n")
    return file


def test_from_a_task_to_a_configuration(run, space, tmp_path):
    result = run("select", "graph-transfer", "--space", space, "--seeds", "3,4", *SETTINGS)
    assert result.exit_code == 0, result.output
    assert "2 trials: 2 complete, 0 pruned, 0 failed" in result.output
    folder = tmp_path / "studies" / "graph-transfer-adgn-mine"
    record = json.loads((folder / "selection.json").read_text())
    mean, std = (record["test"]["log10_mse"][name] for name in ("mean", "std"))
    assert f"{mean:.4f} ± {std:.4f}" in result.output
    assert [run["seed"] for run in record["runs"]] == [3, 4]
    config = resolve_config(read_config(folder / "selected.toml"))
    assert config.optimizer.lr == record["settings"]["optimizer.lr"]
    assert config.loop.max_epochs == 2
    # The name is enough to see it again.
    again = run("select", "--study", "graph-transfer-adgn-mine")
    assert again.exit_code == 0
    assert again.output.splitlines()[-1] == result.output.splitlines()[-1]


def test_progress_is_told_in_plain_lines(run, space):
    result = run("select", "graph-transfer", "--space", space, "--seeds", "0", *SETTINGS)
    assert "graph-transfer: 0 of 2 trials done" in result.stderr
    assert "2 of 2 trials done" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "1,x"], "'1,x' is not a list of numbers"),
        (["--workers", "two"], "--workers"),
        (["--grace", "1"], "--grace"),
    ],
)
def test_wrong_options(run, arguments, message):
    result = run("select", "graph-transfer", *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_ctrl_c_ends_with_a_word(run, space, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("adgn.selection.select", interrupted)
    result = run("select", "graph-transfer", "--space", space)
    assert result.exit_code == 130
    assert "nothing is lost" in result.output
