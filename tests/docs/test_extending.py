"""The page on extending the package, performed to the letter: its files and commands."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL)
FILES = {path: code for kind, path, code in BLOCKS if kind == "python"}
COMMANDS = [line for kind, _, lines in BLOCKS if kind == "sh" for line in lines.splitlines()]

# All commands in one process: the imports take most of the time.
PERFORM = """
import json, runpy, shlex, sys
from adgn.cli import main
for command in json.loads(sys.argv[1]):
    _, *sys.argv[1:] = shlex.split(command)
    print("$", command, flush=True)
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
runpy.run_path("run.py")
"""


def test_the_page_has_what_it_speaks_of():
    assert list(FILES) == ["lazy_sgc.py", "mean_phi.py", "density.py", "run.py"]
    assert {command.split()[1] for command in COMMANDS} >= {"train", "predict", "select"}


@pytest.mark.long
def test_the_page_in_an_empty_folder(tmp_path):
    for path, code in FILES.items():
        (tmp_path / path).write_text(code, encoding="utf-8")
    done = warm.run(
        [sys.executable, "-c", PERFORM, json.dumps(COMMANDS)],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "ADGN_PLUGINS"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "model.stay" in done.stdout
    assert "task.nodes" in done.stdout
    assert json.loads((tmp_path / "runs/density/result.json").read_text())["model"] == "lazy-sgc"
    with (tmp_path / "density.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 64 + 16 + 16
    assert "2 trials: 2 complete" in done.stdout
    assert (tmp_path / "studies/edge-density-lazy-sgc-compact").is_dir()
    assert done.stdout.splitlines()[-1].startswith("2 ['log10_mse'")


def test_a_plugin_reaches_a_process_that_loads_it_alone(tmp_path):
    """The commands above share a process; here nothing but the option has loaded the file."""
    (tmp_path / "density.py").write_text(FILES["density.py"], encoding="utf-8")
    done = warm.run(
        [sys.executable, "-c", "from adgn.cli import main; main()", *COMMANDS[3].split()[1:]],
        cwd=tmp_path,
    )
    assert "task.nodes" in done.stdout, done.stderr


@pytest.mark.long
def test_the_same_files_inside_a_copy_of_the_package(tmp_path):
    """A model and a task of the page where the architecture's page puts those of the package."""
    package = tmp_path / "src" / "adgn"
    shutil.copytree(ROOT / "src" / "adgn", package, ignore=shutil.ignore_patterns("__pycache__"))
    for file, folder in (("lazy_sgc.py", "nn/models"), ("density.py", "tasks")):
        (package / folder / file).write_text(FILES[file], encoding="utf-8")
        with (package / folder / "__init__.py").open("a", encoding="utf-8") as imports:
            name = file.removesuffix(".py")
            imports.write(f"\nfrom adgn.{folder.replace('/', '.')} import {name} as {name}\n")
    commands = [
        "adgn models",
        "adgn tasks edge-density",
        "adgn train edge-density --model lazy-sgc --set loop.max_epochs=1 --run-dir run",
    ]
    (tmp_path / "run.py").write_text("import adgn; print(adgn.__file__)", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PERFORM, json.dumps(commands)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(package.parent), "ADGN_PLUGINS": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == str(package / "__init__.py")
    assert "lazy-sgc" in done.stdout
    assert json.loads((tmp_path / "run" / "result.json").read_text())["task"] == "edge-density"
