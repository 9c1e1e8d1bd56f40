"""`adgn analyze`: verdict on standard output, figures in a folder."""

from types import SimpleNamespace

import pytest
import torch
from typer.testing import CliRunner

from adgn.analysis import diagnose
from adgn.analysis.graphs import example_graph
from adgn.cli import analyze as command
from adgn.nn import build_model

SMALL = ["--nodes", "6", "--layers", "3", "--hidden", "4"]


def run(*arguments):
    return CliRunner().invoke(command.app, list(arguments))


def test_an_untrained_model_and_a_baseline(tmp_path):
    result = run("--model", "adgn", "--baseline", "gcn", *SMALL, "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert result.output.startswith("adgn\nVerdict: ")
    assert "\ngcn\nVerdict: " in result.output
    assert "12 files written" in result.output
    assert len(list((tmp_path / "out").iterdir())) == 12


def test_it_is_reproducible_and_options_reach_the_model(tmp_path):
    def verdict(*arguments):
        return run("--model", "adgn", *SMALL, "--out", str(tmp_path), *arguments).output

    plain = verdict()
    assert plain == verdict()
    changed = verdict("--seed", "1", "--option", "epsilon=0.25", "--option", "phi=gcn")
    assert "for ε = 0.25" in changed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either"),
        (("folder", "--model", "adgn"), "give either"),
        (("--model", "adgn", "--option", "epsilon"), "name=value"),
    ],
)
def test_wrong_arguments_are_told(arguments, message, tmp_path):
    result = run(*arguments, *SMALL, "--out", str(tmp_path))
    assert result.exit_code == 2
    assert message in result.output


def test_unknown_names_are_told_with_the_nearest():
    assert "Did you mean 'ring'" in str(run("--model", "adgn", "--graph", "rings").exception)
    assert "Did you mean 'grand'" in str(run("--model", "grnd").exception)


def test_a_run_is_read_through_the_training_room(tmp_path, monkeypatch):
    torch.manual_seed(0)
    model, x = build_model("adgn", 3, 4, 1, num_layers=3), torch.randn(6, 3)
    data = SimpleNamespace(x=x, edge_index=example_graph("ring", 6))
    asked = []

    def load_run(path):
        asked.append(path)
        return SimpleNamespace(model=model, data=data)

    monkeypatch.setattr(command, "load_run", load_run)
    result = run(str(tmp_path), "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert asked == [tmp_path]
    assert diagnose(model, x, data.edge_index).text() in result.output
