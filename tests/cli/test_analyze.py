"""`adgn analyze`: verdict on standard output, figures in a folder."""

import pytest
from typer.testing import CliRunner

import adgn.training
from adgn.analysis.subject import load_run
from adgn.cli import analyze as command

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


@pytest.fixture
def no_figures(monkeypatch):
    """They take longest."""
    monkeypatch.setattr("adgn.analysis.figures.write_figures", lambda *_: [])


def test_it_is_reproducible_and_options_reach_the_model(tmp_path, no_figures):
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
        (("--model", "adgn", "--device", "cpu"), "goes with a run"),
    ],
)
def test_wrong_arguments_are_told(arguments, message, tmp_path):
    result = run(*arguments, *SMALL, "--out", str(tmp_path))
    assert result.exit_code == 2
    assert message in result.output


def test_unknown_names_are_told_with_the_nearest():
    assert "Did you mean 'ring'" in str(run("--model", "adgn", "--graph", "rings").exception)
    assert "Did you mean 'grand'" in str(run("--model", "grnd").exception)


def test_a_run_is_analysed(tmp_path, no_figures):
    adgn.training.train(
        "graph-transfer",
        run_dir=tmp_path / "run",
        task={"distance": 3, "train": 8, "val": 4, "test": 4},
        model={"hidden_channels": 4, "num_layers": 3},
        loop={"max_epochs": 1},
    )
    arguments = (str(tmp_path / "run"), "--out", str(tmp_path / "out"))
    result = run(*arguments, "--number", "1", "--baseline", "adgn")
    assert result.exit_code == 0, result.output
    assert load_run(tmp_path / "run", 1).diagnose().text() in result.output
    assert "\nadgn-untrained\nVerdict" in result.output
    refused = run(*arguments, "--option", "epsilon=1")
    assert refused.exit_code == 2 and "a run has its options" in refused.output


def test_a_place_that_cannot_be_written_is_told_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("adgn.analysis.subject.untrained_subject", None)
    (tmp_path / "file").write_text("")
    result = run("--model", "gcn", "--out", str(tmp_path / "file" / "below"))
    assert result.exit_code == 2
    assert "Not a directory" in result.output
