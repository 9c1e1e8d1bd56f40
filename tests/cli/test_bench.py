import json
import os

import pytest
from typer.testing import CliRunner

from adgn.bench import run
from adgn.bench.cases import Case, choose_cases
from adgn.bench.records import read
from adgn.bench.workloads import Workload
from adgn.cli.app import app

TINY = (Workload("random", 2, 4, "gcn", 1000),)


def invoke(*arguments):
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


def test_the_help_names_every_case_that_runs_by_default():
    text = " ".join(invoke("--help").output.replace("│", " ").split())
    assert ", ".join(choose_cases([])) + "; default: all." in text


@pytest.fixture
def tiny(monkeypatch):
    cases = {
        "texas": Case("tiny", TINY, TINY, ways=("adgn", "pyg", "pyg-csr")),
        "physics": Case("broken", (Workload("random", 2, 4, "gcn", 7),), TINY),
    }
    monkeypatch.setattr(run, "CASES", cases)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes would start too slowly")
def test_a_case_is_measured_stored_and_printed(tiny, tmp_path):
    out = tmp_path / "bench.json"
    result = invoke("texas", "--repeats", 2, "--threads", 1, "--out", out)
    assert result.exit_code == 0, result.output
    assert "time of PyG, prebuilt CSR adjacency / ours" in result.output
    assert "PyG, prebuilt CSR adjacency" in result.output
    case = read(out).cases["texas"]
    assert case.threads == 1
    ways = case.points[0].ways
    assert set(ways) == {"adgn", "pyg", "pyg-csr"}
    for record in ways.values():
        assert len(record.times) == 2
        assert record.peak_mb > case.imports_mb > 0
    shown = invoke("--show", "--out", out)
    assert "PyG as documented" in shown.output
    assert "texas: " in shown.output


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes would start too slowly")
def test_a_case_that_fails_does_not_cost_the_others(tiny, tmp_path):
    out = tmp_path / "bench.json"
    result = invoke("physics", "texas", "--repeats", 1, "--out", out)
    assert result.exit_code == 1
    assert "edges=7 is not valid" in result.output
    assert "not measured: physics" in result.output
    assert list(json.loads(out.read_text())["cases"]) == ["texas"]


def test_an_unknown_case_is_told_before_any_work(tmp_path):
    result = invoke("texas", "phisics", "--out", tmp_path / "bench.json")
    assert isinstance(result.exception, ValueError)
    assert "case='phisics' is not known. Did you mean 'physics'?" in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_a_file_that_holds_something_else_is_told_before_any_work(tmp_path):
    out = tmp_path / "bench.json"
    out.write_text("{}}")
    result = invoke("texas", "--out", out)
    assert "is not a file of benchmark results" in str(result.exception)
    assert out.read_text() == "{}}"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes would start too slowly")
def test_a_quick_run_over_a_full_one_is_refused_before_any_work(tiny, tmp_path):
    out = tmp_path / "bench.json"
    assert invoke("texas", "--repeats", 1, "--out", out).exit_code == 0
    before = out.read_bytes()
    result = invoke("physics", "texas", "--quick", "--out", out)
    assert isinstance(result.exception, ValueError)
    assert f"{out} has full measurements of texas" in str(result.exception)
    assert "time of" not in result.output
    assert out.read_bytes() == before


def test_slowest_rival_is_handed_on(tmp_path, monkeypatch):
    seen = []

    def note(name, options, tell):
        seen.append(options)
        raise run.BenchError("only looked at")

    monkeypatch.setattr(run, "run_case", note)
    for arguments in ([], ["--slowest-rival", 45.5]):
        assert invoke("texas", *arguments, "--out", tmp_path / "bench.json").exit_code == 1
    assert [options.slowest_rival for options in seen] == [run.Options().slowest_rival, 45.5]


def test_a_slowest_rival_of_no_time_is_refused(tmp_path):
    result = invoke("texas", "--slowest-rival", 0, "--out", tmp_path / "bench.json")
    assert "--slowest-rival 0 is not valid" in str(result.exception)
