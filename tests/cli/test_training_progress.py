import pytest

from adgn.cli.training_progress import show_training
from adgn.training import LearnedNothingWarning, train


def settings(epochs):
    return {
        "task": {"name": "graph-transfer", "distance": 2, "train": 4, "val": 2, "test": 2},
        "model": {"hidden_channels": 2},
        "loop": {"max_epochs": epochs},
    }


def test_few_lines_however_many_epochs(capsys):
    with show_training("label") as (callback, _), pytest.warns(LearnedNothingWarning):
        train(settings(30), callbacks=[callback])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("label: epoch 1/30, loss ")
    assert lines[-1].startswith("label: epoch 30/30, loss ")
    assert "best val log10_mse" in lines[-1]
    assert "at most 0:00:00 left" in lines[-1]
    assert len(lines) < 10


def test_preparation_is_shown_too(capsys):
    with show_training("label") as (_, preparing):
        preparing(5, 10)
        preparing(10, 10)
    assert capsys.readouterr().err.splitlines() == [
        "preparing the data: 50 %",
        "preparing the data: 100 %",
    ]
