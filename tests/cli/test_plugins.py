"""A user's model, aggregation and task from the command line, in real processes."""

import csv
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests import warm
from tests.crossing import exhaustive

FILE = Path(__file__).parents[1] / "helpers" / "own_code.py"
PLUGIN = "--plugin own_code.py"
# Several commands in one process.
PROGRAM = """
import sys
from adgn.cli import main
for command in sys.argv[1:]:
    sys.argv = ["adgn", *command.split()]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


@pytest.fixture
def adgn(tmp_path):
    """Performs commands in one process and a folder of its own, where the plugin is."""
    shutil.copy(FILE, tmp_path)
    clean = {name: value for name, value in os.environ.items() if name != "ADGN_PLUGINS"}

    def run(*given, code=0):
        done = warm.run([sys.executable, "-c", PROGRAM, *given], cwd=tmp_path, env=clean)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def test_runs_and_lists(adgn, tmp_path):
    shown = adgn(
        f"train {PLUGIN} own-task --model own-model --run-dir run --set model.share=0.25",
        f"train {PLUGIN} own-task --set model.phi=own-mean --run-dir adgn",
        *("evaluate run", "predict run --out out.csv"),
        *("tasks", "tasks own-task", "models", "models own-model"),
    )
    assert json.loads((tmp_path / "run/result.json").read_text())["model"] == "own-model"
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1 + 3 * 8
    for text in ("the number at the other end", "task.graphs", "own-model", "model.share"):
        assert text in shown
    file = f"{tmp_path.resolve()}/own_code.py"
    assert (tmp_path / "run/plugins.txt").read_text() == f"{file}\n"
    # Another process does not know the plugin.
    missing = adgn("evaluate run", code=1)
    assert f"made with the plugin {file}, which is not loaded: give --plugin {file}" in missing


@pytest.mark.long
def test_a_report_of_own_runs_and_studies(adgn, tmp_path):
    shown = adgn(
        f"train {PLUGIN} own-task --model own-model --run-dir all/one --set model.share=0.25",
        f"train {PLUGIN} own-task --set model.phi=own-mean --run-dir all/two",
        f"select {PLUGIN} own-task --model own-model --study own --folder all/study --threads 1",
    )
    assert "2 trials: 2 complete" in shown
    shown = adgn(f"report all --out report {PLUGIN}")
    assert "regression: All 3 cells are done." in shown
    table = (tmp_path / "report/tables/regression.md").read_text()
    for text in ("own-model, model.share=0.25", "A-DGN, model.phi=own-mean", "study own", "root"):
        assert text in table
    with (tmp_path / "report/tables/regression.csv").open() as file:
        lines = {line["row_title"]: line for line in csv.DictReader(file)}
    found = json.loads((tmp_path / "all/one/result.json").read_text())["scores"]["test"]
    line = lines["own-model, model.share=0.25"]
    assert float(line["mean"]) == found["log10_mse"]
    assert float(line["root_mean"]) == pytest.approx(found["mse"] ** 0.5)
    assert lines["own-model, study own"]["runs"] == "2"
    assert "own_code.py, which is not loaded: give --plugin" in adgn("report all", code=1)


def test_a_missing_aggregation_names_its_plugin(adgn):
    task = "graph-transfer --set task.distance=2 --set task.train=8 --set loop.max_epochs=1"
    adgn(f"train {PLUGIN} {task} --set model.phi=own-mean --run-dir run")
    assert "own_code.py, which is not loaded: give --plugin" in adgn("evaluate run", code=1)


@pytest.mark.long
@pytest.mark.parametrize("executor", ["local", pytest.param("ray", marks=exhaustive)])
def test_selection_on_two_workers(adgn, tmp_path, executor):
    if executor == "ray":
        pytest.importorskip("ray")
    options = f"--workers 2 --threads 1 --executor {executor} --study own"
    shown = adgn(f"select own-task --model own-model {options} {PLUGIN}", "study show own")
    assert "2 trials: 2 complete" in shown
    assert "2 of 2 trials done: 2 complete" in shown
    record = json.loads((tmp_path / "studies/own/selection.json").read_text())
    assert [run["seed"] for run in record["runs"]] == [1, 2]


@pytest.mark.long
def test_a_study_remembers_its_plugins(adgn, tmp_path):
    file = tmp_path.resolve() / "own_code.py"
    start = f"select own-task --model own-model --threads 1 --study own --trials 1 {PLUGIN}"
    assert "1 trials: 1 complete" in adgn(start)
    # Another process, which is told nothing of the plugin.
    assert "1 of 1 trials done" in adgn("study show own")
    assert "2 trials: 2 complete" in adgn("select --study own --trials 2 --threads 1")
    (tmp_path / "moved").mkdir()
    file.rename(tmp_path / "moved/own_code.py")
    for command in ("study show own", "select --study own"):
        missing = adgn(command, code=1)
        assert "the study 'own' was started with a plugin that is missing now" in missing
        assert f"the plugin {file} cannot be loaded: FileNotFoundError" in missing
        assert "put it back, or give --plugin with where own_code.py is" in missing
    adgn("select --study own --plugin moved/own_code.py")
    assert "2 of 2 trials done" in adgn("study show own")  # it knows the new place


def test_a_plugin_that_cannot_be_loaded(adgn, tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0")
    (line,) = adgn("train sssp --plugin broken.py", code=1).splitlines()
    assert line.startswith("error: the plugin ")
    assert line.endswith("broken.py cannot be loaded: ZeroDivisionError: division by zero")
