import contextlib
import functools
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from adgn.cli.app import app
from adgn.cli.reproduction_progress import show_reproduction
from adgn.experiments.api import plan_cells
from adgn.experiments.driver import Job
from adgn.experiments.records import RunRecord, SearchRecord
from adgn.experiments.results import ResultsDirectory
from adgn.experiments.steps import StepOrder, do_step
from tests import warm
from tests.crossing import exhaustive
from tests.experiments.workers import HereWorker
from tests.selection.studies import wait_until

PROGRAM = [sys.executable, "-c", "from adgn.cli import main; main()"]


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def cells_of(out, experiment):
    files = (out / experiment / "cells").glob("*.json")
    return {file.stem: json.loads(file.read_text()) for file in files}


def check_complete(out, experiment, columns, printed):
    cells = cells_of(out, experiment)
    table = plan_cells([experiment], "smoke")
    plans = [plan for plan in table if columns is None or plan.column.key in columns]
    assert set(cells) == {plan.name for plan in plans}
    about = json.loads((out / experiment / "experiment.json").read_text())
    assert [row["key"] for row in about["rows"]] == list(dict.fromkeys(p.row.key for p in plans))
    assert about["title"] in printed
    for plan in plans:
        cell = cells[plan.name]
        assert cell["status"] == "done", cell["error"]
        assert len(cell["runs"]) == cell["planned_runs"] == plan.planned_runs
        assert isinstance(cell["score"]["mean"], float)
        assert cell["parameters"] > 0
        assert cell["config"]
    if about["kind"] != "seconds":
        made, whole = ({p.column.group or p.column.key for p in some} for some in (plans, table))
        assert made <= set(about["constant"]) <= whole  # some are known without a run
    return len(cells)


def check_tables(run_program, out, root, experiments, columns):
    """Has tables made, by the command line, and looks at every cell of them."""
    some = [] if columns is None else ["--columns", ",".join(columns)]
    places = ["--out", str(out), "--data-root", str(root)]
    command = [*PROGRAM, "reproduce", *experiments, "--budget", "smoke", *places, *some]
    done = run_program([*command, "--workers", "2"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"adgn report {out}"
    for experiment in experiments:
        assert check_complete(out, experiment, columns, done.stdout) > 0


# Each row of each table; the other columns are made alike.
ALL = pytest.param(None, marks=exhaustive, id="all")


@pytest.mark.long
@pytest.mark.parametrize("columns", [pytest.param(("sssp", "radius-2"), id="one each"), ALL])
def test_complete_tables_of_synthetic_data(tmp_path, columns):
    names = ("property", "property-time", "trees", "beyond")
    check_tables(warm.run, tmp_path / "out", tmp_path / "data", names, columns)


@pytest.mark.long
@pytest.mark.parametrize(
    "columns", [pytest.param(("photo", "texas", "photo-1", "texas-2"), id="one each"), ALL]
)
def test_complete_tables_of_the_node_data_sets(tmp_path, data_root, columns):
    names = ("benchmarks", "heterophily", "depth", "depth-heterophily")
    start = functools.partial(subprocess.run, capture_output=True, text=True, check=False)
    check_tables(start, tmp_path / "out", data_root, names, columns)


def test_every_experiment_is_in_the_list():
    printed = run("reproduce", "--list").stdout
    for name in ("property", "property-time", "benchmarks", "heterophily", "trees", "depth"):
        assert f"{name}: " in printed
    laptop = [line for line in printed.splitlines() if line.startswith("laptop")]
    assert "16 of 192 configurations" in laptop[0]
    assert laptop[1].split()[:4] == ["laptop", "60", "1232", "240"]


def test_the_list_tells_the_hours_that_are_used_and_left(tmp_path):
    arguments = ["reproduce", "property", "--models=gcn", "--list", f"--out={tmp_path / 'out'}"]

    def hours():
        lines = run(*arguments).stdout.splitlines()
        words = [line.split() for line in lines if line.startswith("laptop") and " h " in line]
        whole, used, left = words[-1][4::2]
        return float(whole), float(used), float(left)

    whole, used, left = hours()
    plans = plan_cells(["property"], "laptop", ["gcn"])
    expected = sum(1700 + 0.3 * plan.search_epochs for plan in plans) / 3600
    assert (whole, used, left) == (pytest.approx(expected, abs=0.05), 0.0, whole)
    results = ResultsDirectory(tmp_path / "out")
    results.open("laptop")
    plan = plans[0]
    runs = [RunRecord(seed=seed, seconds=3600.0) for seed in (41, 95)]
    found = {"search": SearchRecord(seconds=1800.0), "runs": tuple(runs), "status": "partial"}
    results.write_cell(plan, plan.new_cell().model_copy(update=found))
    # Half an hour of search and two runs of an hour; two more of these, and the other three cells.
    each = (1700 + 0.3 * plan.search_epochs) / 3600
    assert hours() == (whole, 2.5, pytest.approx(2 + 3 * each, abs=0.05))
    both = [RunRecord(seed=seed, seconds=3600.0) for seed in (12, 35)]
    done = {**found, "runs": (*runs, *both), "status": "done"}
    results.write_cell(plan, plan.new_cell().model_copy(update=done))
    assert hours() == (whole, 4.5, pytest.approx(3 * each, abs=0.05))


def test_the_list_is_readable_at_80_columns(monkeypatch):
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, no_color=True, width=80)
    for place in ("reproduce", "console"):
        monkeypatch.setattr(f"adgn.cli.{place}.console", lambda: terminal)
    assert run("reproduce", "--list").exit_code == 0
    printed = re.sub(r"\x1b\[\d*m", "", screen.getvalue())
    assert re.search(r"cells\W+configurations\W+final runs\W+time\W+used\W+left", printed)
    assert "…" not in printed  # where Rich cuts a word
    assert max(map(len, printed.splitlines())) <= 80


def test_a_wrong_budget_of_the_list_is_told():
    result = run("reproduce", "--list", "--budget", "lapptop")
    assert "budget='lapptop' is not known. Did you mean 'laptop'" in str(result.exception)


def test_one_live_display(monkeypatch):
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=120)
    monkeypatch.setattr("adgn.cli.console.error_console", lambda: terminal)
    plan = plan_cells(["trees"], "smoke", ["gcn"])[0]
    with show_reproduction() as (callback, progress):
        progress(1, 4)
        callback.display.live.refresh()
        assert re.search(r"data.*25 %", screen.getvalue())
        shown = len(screen.getvalue())
        callback.tick([Job(plan, plan.new_cell(), 0, running=True)])
        callback.display.live.refresh()
        later = screen.getvalue()[shown:]
    assert "gcn--radius-2" in later
    assert "25 %" not in later


def scores(out):
    return {name: (cell["runs"], cell["settings"]) for name, cell in _timeless(out).items()}


def _timeless(out):
    cells = cells_of(out, "property")
    for cell in cells.values():
        for entry in cell["runs"]:
            entry.pop("seconds")
    return cells


def undisturbed(out):
    """The same cells, step by step in this process."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for plan in plan_cells(["property"], "smoke", ["gcn"]):
        while True:
            cell = ResultsDirectory(out).cell(plan) or plan.new_cell()
            step = plan.next_step(cell)
            if step is None:
                break
            order = StepOrder(str(out), "property", plan.row.key, plan.column.key, "smoke", step)
            assert do_step(order, threading.Event()) == "done"
    torch.set_num_threads(threads)
    return scores(out)


@pytest.mark.long
def test_kills_change_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("ADGN_DATA", str(tmp_path / "data"))
    out = tmp_path / "out"
    command = [*PROGRAM, "reproduce", "property", "--models", "gcn", "--budget", "smoke"]
    command += ["--out", str(out), "--workers", "2"]

    def start():
        return warm.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def settings_found():
        return any(cell["search"] for cell in cells_of(out, "property").values())

    def runs_done():
        return sum(len(cell["runs"]) for cell in cells_of(out, "property").values())

    driver = start()
    wait_until(settings_found, "cell with settings")
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    assert any(cell["status"] != "done" for cell in cells_of(out, "property").values())

    driver = start()
    worker = wait_until(lambda: _workers(out), "worker", driver)[0]
    done_before = runs_done()
    wait_until(lambda: runs_done() > done_before, "run that ends after the second start", driver)
    with contextlib.suppress(ProcessLookupError):  # it may have had nothing left to do
        os.kill(worker, signal.SIGKILL)
    printed, said = driver.communicate(timeout=300)
    assert driver.returncode == 0, printed + said
    assert {cell["status"] for cell in cells_of(out, "property").values()} == {"done"}
    assert scores(out) == undisturbed(tmp_path / "undisturbed")


def _workers(out):
    """The processes whose standard error is a log in this folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is not ours
            if (place / "fd" / "2").readlink().is_relative_to(out):
                found.append(int(place.name))
    return found


@pytest.mark.long
def test_sigterm_stops_with_a_word(tmp_path):
    out = tmp_path / "out"
    driver = warm.Popen(
        [
            *PROGRAM,
            "reproduce",
            "property",
            "--budget",
            "smoke",
            "--out",
            str(out),
            "--data-root",
            str(tmp_path / "data"),
            "--workers",
            "1",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    (worker,) = wait_until(lambda: _workers(out), "worker")
    driver.terminate()
    _, said = driver.communicate(timeout=300)
    assert driver.returncode == 130
    assert "nothing is lost" in said
    assert f"adgn report {out}" in said
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


@pytest.fixture
def here(monkeypatch, tmp_path):
    monkeypatch.setattr("adgn._util.processes.Worker", HereWorker)
    threads = torch.get_num_threads()
    monkeypatch.chdir(tmp_path)
    yield
    torch.set_num_threads(threads)


def test_a_failed_cell_ends_with_code_1(here, monkeypatch):
    def fails(*arguments, **options):
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr("adgn.selection.replicate.train", fails)
    result = run("reproduce", "trees", "--models", "gcn", "--budget", "smoke")
    assert result.exit_code == 1
    assert "failed: trees gcn radius-2 (seed-11): ZeroDivisionError: on purpose" in result.output
    assert "--retry-failed tries them again" in result.output


def test_lines_of_progress_and_a_partial_table(here):
    result = run("reproduce", "trees", "--models", "adgn", "--budget", "smoke", "--rounds", "1")
    assert result.exit_code == 0, result.output
    assert "trees adgn radius-2: settings found" in result.stderr
    assert "(1 of 1 runs)" in result.stderr
    assert result.stdout.splitlines()[-1] == "adgn report reproduction/smoke"
