import json
import shutil
import warnings

import pytest

from adgn.report import ReportError, read_results, read_runs, write_report
from adgn.selection import select
from adgn.training import LearnedNothingWarning, train
from tests.report.sample import build_results, time_table

TASK = {"distance": 2, "train": 8, "val": 4, "test": 4}


def run(folder, **settings):
    loop = {"max_epochs": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearnedNothingWarning)  # what is learnt does not matter
        return train("graph-transfer", run_dir=folder, loop=loop, **{"task": TASK, **settings})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three runs of one configuration and of two others, and a study; not to be changed."""
    place = tmp_path_factory.mktemp("runs")
    for seed in (1, 2, 3):
        run(place / f"seed-{seed}", seed=seed)
    run(place / "wide", model={"hidden_channels": 3})
    run(place / "far", task=TASK | {"distance": 3})
    settings = {"task": TASK, "loop": {"max_epochs": 2}}
    options = {"folder": place / "study", "threads": 1, "seeds": [1, 2], "settings": settings}
    select("graph-transfer", model="gcn", space={"optimizer.lr": [0.1, 0.01]}, **options)
    return place


@pytest.mark.long
def test_a_row_per_model_with_settings_and_a_column_per_task_with_settings(folder):
    (table,) = read_runs(folder).tables
    titles = {row.key: row.title for row in table.experiment.rows}
    assert set(titles.values()) == {
        "A-DGN, loop.max_epochs=2",
        "A-DGN, model.hidden_channels=3, loop.max_epochs=2",
        "GCN, study graph-transfer-gcn-own",
    }
    notes = {column.key: column.note for column in table.experiment.columns}
    assert len(notes) == 2
    assert all("task.distance=" in note for note in notes.values())
    counts = {
        (titles[row].split(",")[0], "=3" in notes[column].partition("distance")[2][:2]): cell.runs
        for (row, column), cell in table.cells.items()
        if cell.status == "done" and "hidden" not in titles[row]
    }
    assert {key: len(runs) for key, runs in counts.items()} == {
        ("A-DGN", False): 3,
        ("A-DGN", True): 1,
        ("GCN", False): 2,
    }
    assert table.statuses == {"done": 4, "waiting": 2}


def test_the_numbers_are_those_of_the_files(folder):
    (table,) = read_runs(folder).tables
    cell = next(cell for cell in table.cells.values() if len(cell.runs) == 3)
    results = [json.loads((folder / f"seed-{n}/result.json").read_text()) for n in (1, 2, 3)]
    scores = [result["scores"]["test"]["log10_mse"] for result in results]
    assert cell.score.mean == pytest.approx(sum(scores) / 3)
    assert cell.test["log10_mse"] == cell.score
    assert sorted(record.seed for record in cell.runs) == [1, 2, 3]
    assert cell.curve.epochs == (1, 2)
    assert cell.parameters == results[0]["parameters"]["total"]
    constant = results[0]["constant_predictor"]["log10_mse"]
    column = next(c for c in table.experiment.columns if c.key == cell.column)
    assert table.constant(column).mean == pytest.approx(constant)
    study = json.loads((folder / "study/selection.json").read_text())
    gcn = next(cell for cell in table.cells.values() if cell.search is not None)
    assert gcn.score.mean == study["test"]["log10_mse"]["mean"]
    assert gcn.score.std == study["test"]["log10_mse"]["std"]
    assert gcn.settings == study["settings"]
    assert gcn.search.trials == len(gcn.search.configurations) == 2
    assert (gcn.search.metric, gcn.search.compared_on) == (study["metric"], "val")
    assert dict(gcn.search.configurations[0].settings) == study["settings"]


def test_a_study_from_before_rungs_and_configurations_were_kept(folder, tmp_path):
    shutil.copytree(folder / "study", tmp_path / "study")
    file = tmp_path / "study" / "selection.json"
    study = json.loads(file.read_text())
    before = {"rungs", "configurations", "metric", "compared_on"}
    file.write_text(json.dumps({key: study[key] for key in study.keys() - before}))
    (table,) = read_runs(tmp_path).tables
    (cell,) = table.cells.values()
    assert (cell.search.rungs, cell.search.configurations) == ((), ())
    assert cell.search.trials == study["trials"]["total"]


@pytest.mark.parametrize("damage", [{"rungs": [{}]}, {"configurations": [{}]}])
def test_a_study_whose_search_is_damaged_is_named(folder, tmp_path, damage):
    shutil.copytree(folder / "study", tmp_path / "study")
    file = tmp_path / "study" / "selection.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | damage))
    with pytest.raises(ReportError, match=r"selection.json is damaged"):
        read_runs(tmp_path)


def test_a_run_directory_and_a_study_by_themselves(folder, tmp_path):
    for name, runs in (("wide", 1), ("study", 2)):
        (table,) = read_runs(folder / name).tables
        assert [len(cell.runs) for cell in table.cells.values()] == [runs]
    written = write_report(read_runs(folder), tmp_path)
    assert "hidden_channels" in written.page.read_text()


def test_no_runs(tmp_path):
    assert read_runs(tmp_path) is None
    assert read_runs(tmp_path / "none") is None
    with pytest.raises(ReportError, match=r"or for a report one with finished runs$"):
        read_results(tmp_path)


def test_a_reproduction_is_not_taken_for_runs(tmp_path):
    results = build_results(tmp_path / "results", [time_table])
    run(results / "property-time" / "work" / "run")
    assert read_runs(results) is None
    assert read_runs(results / "property-time") is None


def test_a_damaged_study_is_named(tmp_path):
    (tmp_path / "selection.json").write_text('{"runs": [{}]}')
    with pytest.raises(ReportError, match=r"selection.json is damaged \(KeyError: 'seed'\)"):
        read_runs(tmp_path)
