"""The page on extending the package, performed to the letter: its files, edits and commands."""

import csv
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

from adgn.nn import unregister_model
from adgn.training import TASKS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL)
FILES = {path: code for kind, path, code in BLOCKS if kind == "python"}
EDITS = {path: edit for kind, path, edit in BLOCKS if kind == "diff"}
COMMANDS = [line for kind, _, lines in BLOCKS if kind == "sh" for line in lines.splitlines()]

# All commands in one process: the imports take most of the time.
PERFORM = """
import json, runpy, shlex, sys
from adgn.cli import main
for command in json.loads(sys.argv[1]):
    program, *sys.argv[1:] = shlex.split(command)
    print("$", command, flush=True)
    try:
        if program == "adgn":
            main()
        else:
            sys.path.insert(0, "scripts")
            sys.argv = sys.argv[1:]
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
"""


def edited(text, edit):
    """A text after the hunks of a diff without line numbers."""
    for hunk in edit.split("@@\n"):
        lines = hunk.splitlines()
        before = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
        after = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
        assert text.count(before) == 1, f"the page edits lines that are not there:\n{before}"
        text = text.replace(before, after)
    return text


def test_the_page_has_what_it_speaks_of():
    folders = [str(Path(path).parent) for path in FILES]
    assert folders == ["src/adgn/nn/models", "src/adgn/data", "src/adgn/training/tasks", "."]
    assert len(EDITS) == 3
    assert {command.split()[1] for command in COMMANDS} >= {"train", "predict", "select"}


def test_the_page_in_a_copy_of_the_package(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for folder in ("src", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    (tmp_path / "results").mkdir()
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "results" / "models.json", tmp_path / "results")
    for path, code in FILES.items():
        (tmp_path / path).write_text(code, encoding="utf-8")
    for path, edit in EDITS.items():
        file = tmp_path / path
        file.write_text(edited(file.read_text(encoding="utf-8"), edit), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PERFORM, json.dumps(COMMANDS)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "model.stay" in done.stdout
    assert "task.nodes" in done.stdout
    assert "random graphs whose share of present edges" in done.stdout
    assert json.loads((tmp_path / "runs/density/result.json").read_text())["model"] == "lazy-sgc"
    with (tmp_path / "density.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 64 + 16 + 16
    assert "### lazy-sgc" in (tmp_path / "docs" / "models.md").read_text(encoding="utf-8")
    assert (tmp_path / "studies/edge-density-lazy-sgc-compact").is_dir()


def test_the_same_files_in_a_project_of_ones_own(tmp_path, monkeypatch, capsys):
    modules = [Path(path).stem for path in FILES]
    for path, code in FILES.items():
        own = code.replace("from adgn.data.edge_density import", "from edge_density import")
        (tmp_path / Path(path).name).write_text(own, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        runpy.run_path(str(tmp_path / "run.py"))
        assert capsys.readouterr().out.startswith("2 ['log10_mse'")
    finally:
        TASKS.pop("edge-density", None)
        unregister_model("lazy-sgc")
        for module in modules:
            sys.modules.pop(module, None)
