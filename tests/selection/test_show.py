import csv
import io
import json

import pytest
import torch

from adgn.selection import StudyFolder, select
from adgn.selection.show import best_table, export, failure_table, importances
from tests.selection.studies import SPACE, InProcess, arguments


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown") / "tiny"
    threads = torch.get_num_threads()
    select(
        **{**arguments(folder, InProcess()), "space": {**SPACE, "optimizer.lr": [0.1, 0.01, 1e30]}}
    )
    torch.set_num_threads(threads)
    return folder


@pytest.fixture
def opened(folder):
    return StudyFolder("tiny", folder).open()


def test_tables(opened):
    columns, rows = best_table(*opened, 3)
    assert columns == [
        "trial", "val log10_mse", "optimizer.lr", "model.hidden_channels", "minutes"
    ]  # fmt: skip
    assert len(rows) == 3
    scores = [float(row[1]) for row in rows]
    assert scores == sorted(scores)
    _, failures = failure_table(*opened)
    assert [row[0] for row in failures] == ["4", "5"]
    assert all("DivergedError" in row[1] and "1e+30" in row[2] for row in failures)


def test_shares_of_the_settings(opened):
    shares = importances(opened[0])
    assert set(shares) == {"optimizer.lr", "model.hidden_channels"}
    assert sum(shares.values()) == pytest.approx(1.0)


def test_too_few_trials_say_nothing_about_shares(tiny):
    select(**{**tiny, "trials": 2})
    assert importances(StudyFolder("tiny", tiny["folder"]).open()[0]) == {}


def test_csv_has_a_line_per_trial(opened):
    rows = list(csv.DictReader(io.StringIO(export(*opened, "csv"))))
    assert [row["state"] for row in rows] == ["complete"] * 4 + ["failed"] * 2
    assert {row["optimizer.lr"] for row in rows} == {"0.1", "0.01", "1e+30"}
    assert rows[0]["runs"] == "2"
    assert rows[4]["error"].startswith("DivergedError")
    assert float(rows[0]["log10_mse"]) == opened[0].get_trials()[0].value


def test_json_has_every_run(opened):
    content = json.loads(export(*opened, "json"))
    assert content["study"] == "tiny"
    assert content["definition"]["space"] == opened[1].space
    assert len(content["trials"]) == 6
    assert [run["seed"] for run in content["trials"][0]["runs"]] == [0, 1]
    assert "Traceback" in content["trials"][5]["traceback"]


def test_another_form(opened):
    with pytest.raises(ValueError, match=r"format='jsn' is not known. Did you mean 'json'"):
        export(*opened, "jsn")
