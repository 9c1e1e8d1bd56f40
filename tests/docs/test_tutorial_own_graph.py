"""The tutorial on own graphs and the README's five lines, performed as written.

Only the number of epochs is less: what is tested is that each block runs and gives what it says.
"""

import csv
import re
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

import adgn
from adgn.cli.app import app
from adgn.data import example_tables

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "tutorial-own-graph.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL)
FEW = {"loop": {"max_epochs": 2}}


@pytest.fixture
def few_epochs(monkeypatch):
    for name in ("NodeClassifier", "GraphClassifier"):
        monkeypatch.setattr(adgn, name, partial(getattr(adgn, name), settings=FEW))


def perform(command):
    """A command of the page."""
    program, *words = command.split()
    assert program == "adgn"
    if words[0] == "fit":
        words += ["--set", "loop.max_epochs=2"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, (command, result.output)


@pytest.mark.long
def test_the_page_from_its_beginning_to_its_end(few_epochs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for kind, _, text in BLOCKS:
        if kind == "python":
            exec(compile(text, str(ROOT / "docs" / "tutorial-own-graph.md"), "exec"), names)
        elif kind == "sh":
            for command in text.splitlines():
                perform(command)
    printed = capsys.readouterr().out
    assert re.search(r"0\.\d{3} of 902 left-out topics are right", printed)
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()
    for path in ("model/report.html", "model/README.md", "model/explain-p0.png", "shapes/fit.json"):
        assert (tmp_path / path).stat().st_size > 0
    with (tmp_path / "shapes" / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 80
    assert {row["known"] for row in rows[:60]} == {"ring", "star"}
    assert {row["known"] for row in rows[60:]} == {""}


def test_the_readme_needs_five_lines(few_epochs, tmp_path, monkeypatch, capsys):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    part = readme[readme.index("## Your own graph") :]
    code = re.search(r"```python\n(.*?)```", part, re.DOTALL)[1]
    assert len([line for line in code.splitlines() if line]) <= 5
    command = re.search(r"```text\n(adgn fit .*)\n", part)[1]
    monkeypatch.chdir(tmp_path)
    for path in example_tables():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    exec(code, {})
    assert adgn.load(tmp_path / "model").kind == "classification"
    assert "probability" in capsys.readouterr().out
    perform(command)
    assert (tmp_path / "model" / "report.html").exists()
