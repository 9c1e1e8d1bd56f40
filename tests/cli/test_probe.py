"""`adgn probe`: words, files, and a suggestion that other commands take as it is."""

import csv
import json

import numpy as np
import pytest
import tomllib
from typer.testing import CliRunner

from adgn.cli.app import app
from adgn.training import read_config, resolve_config

SMALL = ("--set", "task.train=[2, 30]", "--set", "task.val=[2, 15]", "--set", "task.test=[2, 15]")
SMALL += ("--set", "task.min_nodes=10", "--set", "task.edge_noise=0.0")


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """People, whose group is that of those whom they follow."""
    folder = tmp_path_factory.mktemp("tables")
    generator = np.random.default_rng(0)
    heard = generator.integers(0, 240, 240)
    hint = generator.integers(0, 2, 240)
    group = [f"g{hint[other]}" for other in heard]
    nodes, edges = folder / "people.csv", folder / "follows.csv"
    with nodes.open("w", newline="") as file:
        rows = zip(range(240), hint, generator.normal(size=240).round(3), group, strict=True)
        csv.writer(file).writerows([("id", "hint", "age", "group"), *rows])
    with edges.open("w", newline="") as file:
        csv.writer(file).writerows([("source", "target"), *zip(range(240), heard, strict=True)])
    return nodes, edges


@pytest.fixture(scope="module")
def probed(tables, tmp_path_factory):
    out = tmp_path_factory.mktemp("probe")
    options = ("--target", "group", "--directed", "--hops", 2, "--category", "hint")
    result = run(
        *("probe", *tables, *options, "--json", out / "found.json"),
        *("--suggestion", out / "suggestion.toml", "--out", out / "page"),
    )
    assert result.exit_code == 0, result.output
    return out, result


def test_own_tables_are_probed_in_words(probed):
    _, result = probed
    assert "The graph helps: accuracy 100.0 %" in result.stdout
    assert "Direction: out" in result.stdout
    assert "Range: 1 hop carries information" in result.stdout
    assert "Suggested: --set model.name=adgn" in result.stdout


def test_findings_suggestion_picture_and_page_are_written(probed):
    out, _ = probed
    found = json.loads((out / "found.json").read_text())
    assert (found["helps"], found["direction"], found["hops"]) == (True, "out", 1)
    with (out / "suggestion.toml").open("rb") as file:
        assert tomllib.load(file) == found["suggestion"]
    page = (out / "page" / "probe.html").read_text()
    assert "The graph helps" in page
    assert page.count("<svg") == 1
    assert (out / "page" / "probe.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (out / "page" / "probe.svg").read_bytes()


def test_fit_and_train_take_the_suggestion_as_it_is(probed, tables, tmp_path):
    out, _ = probed
    suggested = out / "suggestion.toml"
    config = resolve_config(read_config(suggested), {"task": {"name": "texas"}})
    assert config.model.name == "adgn"
    assert config.model.options["direction"] == "out"
    result = run(
        *("fit", *tables, "--target", "group", "--directed", "--config", suggested),
        *("--set", "loop.max_epochs=3", "--out", tmp_path / "model"),
    )
    assert result.exit_code == 0, result.output
    written = json.loads((tmp_path / "model" / "config.json").read_text())
    assert '"direction": "out"' in json.dumps(written)


def test_a_task_is_probed_with_its_settings(tmp_path):
    result = run("probe", "laplacian", *SMALL, "--hops", 2, "--json", tmp_path / "found.json")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["graphs"] == 120
    assert (found["hops"], found["operator"]) == (1, "laplacian")


def test_analyze_tells_whether_the_model_uses_the_range(tmp_path, monkeypatch):
    # Its own figures, which test_analyze.py looks at, take longest.
    monkeypatch.setattr("adgn.analysis.figures.write_figures", lambda *_: [])
    quick = ("--set", "loop.max_epochs=1", "--set", "model.num_layers=2")
    result = run("train", "laplacian", *SMALL, *quick, "--run-dir", tmp_path / "run")
    assert result.exit_code == 0, result.output
    result = run("analyze", tmp_path / "run", "--probe", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "the probe found information up to 1 hop: it uses the whole range." in result.output
    page = (tmp_path / "out" / "analysis.html").read_text()
    assert "Does the model use this range?" in page
    assert page.count("<svg") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing-like-that",), "nothing-like-that"),
        (("{nodes}", "{edges}"), "--target is missing"),
        (("{nodes}", "{edges}", "--target", "colour"), "colour"),
        (("texas", "--direction", "up"), "direction='up'"),
        (("texas", "--metric", "accuracy"), "a task has its own"),
    ],
)
def test_wrong_arguments_are_told(arguments, message, tables):
    filled = [text.format(nodes=tables[0], edges=tables[1]) for text in arguments]
    result = run("probe", *filled)
    assert result.exit_code == 2
    assert message in result.output
