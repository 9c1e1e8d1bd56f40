"""A user's model, aggregation and task from the command line, in real processes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "own_code.py"
RUN = ("own-task", "--model", "own-model")


@pytest.fixture
def adgn(tmp_path):
    """The program in a folder of its own, where the plugin is `own_code.py`."""
    shutil.copy(FILE, tmp_path)
    clean = {name: value for name, value in os.environ.items() if name != "ADGN_PLUGINS"}

    def run(*arguments, code=0, **environment):
        done = subprocess.run(
            [sys.executable, "-c", "from adgn.cli import main; main()", *map(str, arguments)],
            cwd=tmp_path,
            env={**clean, "COLUMNS": "200", **environment},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def test_a_run_from_its_start_to_predictions(adgn, tmp_path):
    plugin = ("--plugin", "own_code.py")
    adgn("train", *plugin, *RUN, "--run-dir", "run", "--set", "model.share=0.25")
    assert json.loads((tmp_path / "run/result.json").read_text())["model"] == "own-model"
    assert (tmp_path / "run/plugins.txt").read_text() == f"{tmp_path.resolve()}/own_code.py\n"
    missing = adgn("evaluate", "run", code=1)
    assert f"made with the plugin {tmp_path.resolve()}/own_code.py" in missing
    assert f"give --plugin {tmp_path.resolve()}/own_code.py" in missing
    assert "log10_mse" in adgn("evaluate", "run", *plugin)
    adgn("predict", "run", "--out", "out.csv", ADGN_PLUGINS="own_code.py")
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1 + 3 * 8


def test_lists_have_what_a_plugin_registers(adgn):
    assert "the number at the other end" in adgn("tasks", "--plugin", "own_code.py")
    assert "task.graphs" in adgn("tasks", "own-task", "--plugin", "own_code.py")
    assert "own-model" in adgn("models", "--plugin", "own_code.py")
    assert "model.share" in adgn("models", "own-model", "--plugin", "own_code.py")


@pytest.mark.parametrize("executor", ["local", "ray"])
def test_selection_on_two_workers(adgn, tmp_path, executor):
    if executor == "ray":
        pytest.importorskip("ray")
    options = (
        "--workers",
        2,
        "--executor",
        executor,
        "--study",
        "own",
        "--set",
        "model.share=0.25",
    )
    shown = adgn("select", *RUN, *options, "--plugin", "own_code.py")
    assert "2 trials: 2 complete" in shown
    record = json.loads((tmp_path / "studies/own/selection.json").read_text())
    assert len(record["runs"]) == 2
    assert "2 complete" in adgn("study", "show", "own", "--plugin", "own_code.py")


def test_an_aggregation_of_a_plugin_in_adgn(adgn):
    adgn("train", "own-task", "--set", "model.phi=own-mean", "--plugin", "own_code.py")
    unknown = adgn("train", "sssp", "--set", "model.phi=own-mean", code=1)
    assert "phi='own-mean' is not known" in unknown


def test_a_plugin_that_cannot_be_loaded(adgn, tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0")
    shown = adgn("train", "sssp", "--plugin", "broken.py", code=1)
    (line,) = shown.splitlines()
    assert line.startswith("error: the plugin ")
    assert line.endswith("broken.py cannot be loaded: ZeroDivisionError: division by zero")
