import csv
import io
import json

import pytest
import torch
from typer.testing import CliRunner

from adgn.cli.app import app
from adgn.selection import select
from tests.selection.studies import InProcess, arguments


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "tiny"
    threads = torch.get_num_threads()
    space = {"optimizer.lr": [0.1, 0.01, 1e30], "model.hidden_channels": [2, 4]}
    select(**{**arguments(folder, InProcess()), "space": space})
    torch.set_num_threads(threads)
    return folder


def call(*arguments):
    result = CliRunner().invoke(app, ["study", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_show(folder):
    output = call("show", "tiny", "--folder", folder)
    assert "6 of 6 trials done: 4 complete, 0 pruned, 2 failed" in output
    assert "share of each setting in the variance" in output
    assert output.count("DivergedError") == 2
    assert "Traceback" not in output
    with_tracebacks = call("show", "tiny", "--folder", folder, "--tracebacks")
    assert with_tracebacks.count("Traceback (most recent call last)") >= 2


def test_export(folder, tmp_path):
    rows = list(csv.DictReader(io.StringIO(call("export", "tiny", "--folder", folder))))
    assert len(rows) == 6
    file = tmp_path / "trials.json"
    assert call("export", "tiny", "--folder", folder, "--format", "json", "--out", file) == ""
    assert len(json.loads(file.read_text())["trials"]) == 6


def test_export_to_a_place_that_cannot_be_written(folder, tmp_path):
    out = tmp_path / "none" / "trials.csv"
    command = ["study", "export", "tiny", "--folder", str(folder), "--out", str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert f"cannot write {out}: No such file" in str(result.exception)
    assert "another --out" in str(result.exception)
    assert "adgn resume" not in str(result.exception)


def test_a_study_that_is_not_there(tmp_path):
    result = CliRunner().invoke(app, ["study", "show", "nothing", "--folder", str(tmp_path)])
    assert result.exit_code == 1
    assert "there is no study in" in str(result.exception)
