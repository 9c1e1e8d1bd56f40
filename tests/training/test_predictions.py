import csv

import pytest
import torch
from safetensors.torch import load_file

from adgn.training import ConfigError, train
from adgn.training.predictions import write_predictions


@pytest.fixture
def run(tiny, tmp_path):
    return train(tiny, run_dir=tmp_path / "run")


def test_csv_has_a_row_per_prediction(run, tmp_path):
    count = write_predictions(run.run_dir, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert count == len(rows) == 12 + 6 + 6
    errors = [
        (float(row["prediction"]) - float(row["target"])) ** 2
        for row in rows
        if row["split"] == "test"
    ]
    assert sum(errors) / 6 == pytest.approx(run.scores["test"]["mse"], rel=1e-5)


def test_safetensors_has_outputs_too(run, tmp_path):
    write_predictions(run.run_dir, tmp_path / "out.safetensors")
    tensors = load_file(tmp_path / "out.safetensors")
    assert tensors["test.output"].shape == (6, 1)
    assert torch.equal(tensors["val.prediction"], tensors["val.output"])


def test_wrong_files_are_refused_before_any_work(tmp_path):
    with pytest.raises(ConfigError, match=r"no known ending; use .csv or .safetensors"):
        write_predictions(tmp_path, tmp_path / "out.parquet")
    with pytest.raises(ConfigError, match="does not exist"):
        write_predictions(tmp_path, tmp_path / "nowhere" / "out.csv")
