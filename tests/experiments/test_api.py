import json
import os
import shutil
import sys

import numpy as np
import pytest
from filelock import FileLock

from adgn.data import NODE_DATASETS, MissingFileError
from adgn.experiments import steps
from adgn.experiments.api import plan_cells
from adgn.experiments.budgets import BUDGETS, Search
from adgn.experiments.errors import ReproductionError
from adgn.experiments.plan import plan_cell
from adgn.experiments.results import ResultsDirectory
from adgn.report import read_results
from adgn.selection import replicate
from adgn.training import prepare, resolve_config
from adgn.training.errors import TrainingError
from tests.experiments.workers import Steps

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


# Each cell is a search and two runs: as few of them as show what is tested.
ONE = {"models": ["gcn"], "columns": ["sssp"]}
TWO = {"models": ["gcn"], "columns": ["diameter", "sssp"]}


def network_of(cell):
    return prepare(resolve_config(tomllib.loads(cell.config))).model


def statuses(result):
    return {job.plan.name: job.cell.status for job in result.jobs}


def test_breadth_first_and_stopped_after_a_round(here):
    callback = Steps()
    result = here("property", **TWO, rounds=1, callback=callback)
    assert set(statuses(result).values()) == {"partial"}
    numbers = [step for _, step in callback.begun]
    assert numbers == [0] * 2 + [1] * 2
    assert all(len(job.cell.runs) == 1 for job in result.jobs)
    callback = Steps()
    result = here("property", **TWO, callback=callback)
    assert [step for _, step in callback.begun] == [2] * 2
    assert set(statuses(result).values()) == {"done"}
    callback = Steps()
    here("property", **TWO, callback=callback)
    assert callback.begun == []


def test_some_columns_only(here, tmp_path):
    result = here("property", **TWO)
    assert statuses(result) == {"gcn--diameter": "done", "gcn--sssp": "done"}
    about = json.loads((tmp_path / "out" / "property" / "experiment.json").read_text())
    assert len(about["columns"]) == 4  # the table is the same, with cells that wait
    assert set(about["constant"]) == {"sssp", "diameter"}
    # One of another definition is in the table until it is measured again, beside its constant.
    file = tmp_path / "out" / "property" / "cells" / "gcn--sssp.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "fingerprint": "another"}))
    here("property", models=["gcn"], columns=["laplacian"])
    about = json.loads((tmp_path / "out" / "property" / "experiment.json").read_text())
    assert set(about["constant"]) == {"sssp", "diameter", "laplacian"}


def test_a_cell_has_what_its_runs_say(here, tmp_path):
    result = here("property", models=["adgn-ws"], columns=["sssp"])
    (cell,) = [job.cell for job in result.jobs]
    file = tmp_path / "out" / "property" / "cells" / "adgn-ws--sssp.json"
    written = json.loads(file.read_text())
    assert written == cell.model_dump(mode="json")
    scores = [run.scores["test"]["log10_mse_paper"] for run in cell.runs]
    assert [run.seed for run in cell.runs] == [41, 95]
    assert cell.score.mean == pytest.approx(sum(scores) / 2)
    assert cell.score.std == pytest.approx(abs(scores[0] - scores[1]) / 2**0.5)
    assert written["published"] == {
        "mean": 0.4296,
        "std": 0.1003,
        "row": "A-DGN ws",
        "column": "Eccentricity",
        "source": "the A-DGN paper",
        "differences": [
            "Stopping: published, at most 1500 epochs, patience 100 on the validation error; here, "
            "at most 2 epochs, patience 100 on the validation error."
        ],
    }
    assert cell.search.how.startswith("random search, 2 of 12 configurations")
    assert cell.curve.epochs == (1, 2)
    assert cell.parameters == sum(p.numel() for p in network_of(cell).parameters())
    assert len(cell.curve.train) == len(cell.curve.val) == 2
    assert "[model]" in cell.config
    assert cell.config.count(str(cell.settings["model.epsilon"])) >= 1
    about = json.loads((tmp_path / "out" / "property" / "experiment.json").read_text())
    assert [row["key"] for row in about["rows"]] == ["adgn-ws"]
    quoted = {row["title"]: row["values"] for row in about["quoted"]}
    assert quoted["GCN"]["laplacian"]["mean"] == 0.9499
    assert quoted["A-DGN randomised"]["diameter"] == {"mean": 0.1243, "std": 0.0626}
    assert about["notes"][0].endswith("the numbers mean nothing.")
    assert set(about["constant"]) == {"sssp"}


def test_a_failing_cell_is_shown_and_the_rest_goes_on(here, monkeypatch):
    train = replicate.train

    def sometimes(config, **options):
        if config.task.name == "sssp" and config.seed == 95:
            raise ZeroDivisionError("on purpose")
        return train(config, **options)

    monkeypatch.setattr(replicate, "train", sometimes)
    result = here("property", **TWO)
    assert statuses(result).pop("gcn--sssp") == "failed"
    assert statuses(result)["gcn--diameter"] == "done"
    (job,) = result.failed
    assert job.cell.error.message == "ZeroDivisionError: on purpose"
    assert job.cell.error.run == "seed-95"
    assert "sometimes" in job.cell.error.traceback
    assert len(job.cell.runs) == 1  # the run before it is kept
    callback = Steps()
    assert here("property", **TWO, callback=callback).failed
    assert callback.begun == []
    monkeypatch.setattr(replicate, "train", train)
    result = here("property", **TWO, retry_failed=True, callback=callback)
    assert callback.begun == [("gcn--sssp", 2)]
    assert set(statuses(result).values()) == {"done"}
    assert result.jobs[1].cell.error is None


def test_a_search_that_fails(here, monkeypatch):
    def fails(*arguments, **options):
        raise ZeroDivisionError("on purpose")

    select = steps.select
    monkeypatch.setattr(steps, "select", fails)
    result = here("property", **TWO)
    assert {job.cell.error.run for job in result.failed} == {"search"}
    assert len(result.failed) == 2
    monkeypatch.setattr(steps, "select", select)
    result = here("property", **TWO, retry_failed=True)
    assert set(statuses(result).values()) == {"done"}


def test_another_definition_moves_results_aside(here, monkeypatch, tmp_path):
    first = here("property", **ONE, rounds=1)
    before = first.jobs[0].cell
    budget = BUDGETS["smoke"]["property"]
    changed = type(budget)(**{**vars(budget), "seeds": 1})
    monkeypatch.setitem(BUDGETS["smoke"], "property", changed)
    result = here("property", **ONE)
    assert len(result.moved) == 1
    assert json.loads((result.moved[0] / "cell.json").read_text()) == before.model_dump(mode="json")
    assert (result.moved[0] / "work" / "runs" / "seed-41" / "result.json").exists()
    assert set(statuses(result).values()) == {"done"}


def test_a_cell_without_its_work_goes_on_with_what_was_selected(here, tmp_path):
    first = here("property", **ONE, rounds=1)
    work = tmp_path / "out" / "property" / "work"
    work.rename(tmp_path / "lost")
    callback = Steps()
    result = here("property", **ONE, callback=callback)
    assert [step for _, step in callback.begun] == [2]
    assert result.jobs[0].cell.settings == first.jobs[0].cell.settings
    assert result.jobs[0].cell.runs[0] == first.jobs[0].cell.runs[0]


def test_work_of_another_definition_is_not_taken_for_a_cells_own(here, monkeypatch, tmp_path):
    here("property", **ONE)
    budget = BUDGETS["smoke"]["property"]
    settings = {**budget.settings, "loop": {"max_epochs": 1}}
    changed = type(budget)(**{**vars(budget), "settings": settings})
    monkeypatch.setitem(BUDGETS["smoke"], "property", changed)
    for file in (tmp_path / "out" / "property" / "cells").iterdir():
        file.unlink()
    result = here("property", **ONE)
    assert len(result.moved) == 1
    assert {run.epochs for job in result.jobs for run in job.cell.runs} == {1}


def test_a_cell_is_kept_where_only_its_work_is_of_something_else(here, tmp_path):
    first = here("property", **TWO, rounds=1)
    mark = tmp_path / "out" / "property" / "work" / "gcn--sssp" / "fingerprint"
    mark.write_text("another\n")
    result = here("property", **TWO)
    assert len(result.moved) == 1
    assert not (result.moved[0] / "cell.json").exists()
    cell = result.jobs[1].cell
    assert cell.runs[0] == first.jobs[1].cell.runs[0]
    assert cell.settings == first.jobs[1].cell.settings
    assert cell.status == "done"


def test_a_failed_search_leaves_those_who_use_its_settings_alone(here, monkeypatch, data_root):
    budget = BUDGETS["smoke"]["benchmarks"]
    searching = Search(trials=1, splits=(0,), max_epochs=1)
    changed = type(budget)(**{**vars(budget), "search": searching})
    monkeypatch.setitem(BUDGETS["smoke"], "benchmarks", changed)

    def fails(*arguments, **options):
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(steps, "select", fails)
    usual = {"models": ["gcn"], "columns": ["photo", "photo-1"], "root": data_root}
    first = here("benchmarks", "depth", **usual)
    assert statuses(first) == {"gcn--photo": "failed", "gcn--photo-1": "done"}
    callback = Steps()
    again = here("benchmarks", "depth", **usual, callback=callback)
    assert again.moved == ()
    assert callback.begun == []


def test_a_lost_cell_file_is_filled_from_its_own_work(here, tmp_path):
    first = here("property", **ONE)
    file = tmp_path / "out" / "property" / "cells" / "gcn--sssp.json"
    file.unlink()
    result = here("property", **ONE)
    assert result.moved == ()
    assert result.jobs[0].cell.runs == first.jobs[0].cell.runs


def test_a_run_of_another_configuration_is_not_taken_for_this_one(here, tmp_path):
    here("property", **ONE)
    runs = tmp_path / "out" / "property" / "work" / "gcn--sssp" / "runs"
    (runs / "seed-41").rename(tmp_path / "lost")
    (runs / "seed-95").rename(runs / "seed-41")
    (tmp_path / "out" / "property" / "cells" / "gcn--sssp.json").unlink()
    (job,) = here("property", **ONE).failed
    assert "another configuration (seed" in job.cell.error.message


def test_an_experiment_is_named_once_its_files_are_there(here, monkeypatch, tmp_path):
    def missing(name):
        raise MissingFileError(f"{name} is not here")

    here("property", **ONE, rounds=1)
    monkeypatch.setattr("adgn.experiments.outline.prepare", missing)
    with pytest.raises(MissingFileError):
        here("benchmarks")
    about = json.loads((tmp_path / "out" / "reproduction.json").read_text())
    assert about["experiments"] == ["property"]


@pytest.mark.parametrize(
    ("experiments", "options", "message"),
    [
        (["propperty"], {}, "Did you mean 'property'"),
        (["property"], {"models": ["graphsge"]}, "Did you mean 'graphsage'"),
        (["property"], {"models": ["dagnn"]}, "model='dagnn' is not known"),
        (["property"], {"columns": ["ssssp"]}, "column='ssssp' is not known. Did you mean 'sssp'"),
        (["trees"], {"columns": ["radius-7"]}, "column='radius-7' is not part of the budget"),
        (["property"], {"columns": []}, "leave nothing of the experiment 'property'"),
        (["property", "trees"], {"columns": ["sssp"]}, "leave nothing of the experiment 'trees'"),
        ([], {"models": []}, "leave nothing of the reproduction"),
        (["property"], {"budget": "papers"}, "Did you mean 'paper'"),
        (["property"], {"rounds": 0}, "rounds=0 is not valid"),
        (["property"], {"workers": 0}, "workers=0 is not valid"),
        (["property"], {"executor": "ray"}, "has no effect without budget='paper'"),
        (["property"], {"storage": "sqlite://"}, "has no effect without budget='paper'"),
        (["property"], {"storage": "postgresql://a:b@h/d"}, r"storage='postgresql://a:\*\*\*@h/d'"),
        (["property"], {"budget": "paper", "storage": "sqlite://"}, "is in memory"),
        (["property"], {"budget": "paper", "executor": "rays"}, "Did you mean 'ray'"),
        (["property"], {"budget": "paper", "ray_address": "here:1"}, "without executor='ray'"),
    ],
)
def test_wrong_arguments_come_before_any_file(here, tmp_path, experiments, options, message):
    with pytest.raises((ValueError, RuntimeError), match=message):
        here(*experiments, **options)
    assert not (tmp_path / "out").exists()


def test_a_missing_data_set_is_told_before_anything_runs(here, monkeypatch):
    def missing(name):
        raise MissingFileError(f"{name} is not here")

    monkeypatch.setattr("adgn.experiments.outline.prepare", missing)
    callback = Steps()
    with pytest.raises(MissingFileError, match="pubmed is not here"):
        here("property", "benchmarks", models=["gcn"], callback=callback)
    assert callback.begun == []


@pytest.mark.parametrize(
    ("about", "message"),
    [
        (
            {"format": 2, "adgn": "9", "budget": "smoke", "experiments": []},
            "has format 2; .* wrote it .9.",
        ),
        ({"format": 1, "adgn": "0", "budget": "laptop", "experiments": []}, "budget 'laptop'"),
        ({"format": 1}, "is damaged: budget"),
        (None, "is not empty and has no reproduction.json"),
    ],
)
def test_directories_of_something_else(here, tmp_path, about, message):
    out = tmp_path / "out"
    out.mkdir()
    if about is None:
        (out / "thesis.tex").write_text("…")
    else:
        (out / "reproduction.json").write_text(json.dumps(about))
    with pytest.raises(ReproductionError, match=message):
        here("property", models=["gcn"])


def test_two_at_once(here, tmp_path):
    here("trees", models=["gcn"], rounds=1)
    with (
        FileLock(tmp_path / "out" / ".lock"),
        pytest.raises(ReproductionError, match="another `adgn reproduce` is at work"),
    ):
        here("trees", models=["gcn"])


def test_a_damaged_cell(here, tmp_path):
    here("trees", models=["gcn"])
    file = tmp_path / "out" / "trees" / "cells" / "gcn--radius-2.json"
    file.write_text("{")
    with pytest.raises(ReproductionError, match="move it away"):
        here("trees", models=["gcn"])


def test_models_and_rows():
    rows = {plan.row.key for plan in plan_cells(["property"], "laptop", ["adgn"])}
    assert rows == {
        plan.row.key for plan in plan_cells(["property"], "laptop") if plan.row.model == "adgn"
    }
    assert {p.row.key for p in plan_cells(["property"], "laptop", ["adgn-ldw"])} == {"adgn-ldw"}


def test_a_column_that_was_not_asked_for_has_its_published_value(here, tmp_path):
    here("trees", models=["adgn"], columns=["radius-2"])
    table = read_results(tmp_path / "out").tables[0]
    waiting = table.cells["adgn", "radius-5"]
    assert waiting.status == "waiting"
    assert (
        waiting.published.mean == plan_cell("trees", "adgn", "radius-5", "smoke").published().mean
    )
    assert waiting.planned_runs == 1
    assert table.experiment.constant["radius-5"].mean == 0.5**5


def test_a_published_value_that_was_corrected_needs_no_new_run(here, tmp_path):
    here("property", **ONE)
    file = tmp_path / "out" / "property" / "cells" / "gcn--sssp.json"
    cell = json.loads(file.read_text())
    file.write_text(json.dumps({**cell, "published": {**cell["published"], "mean": 7.0}}))
    callback = Steps()
    here("property", **ONE, callback=callback)
    assert callback.begun == []
    assert json.loads(file.read_text()) == cell


def test_a_report_while_rows_are_added(here, tmp_path, monkeypatch):
    here("property", **ONE)
    begin = ResultsDirectory.begin
    reports = []

    def look(self, plan, **options):
        cell = begin(self, plan, **options)
        reports.append(len(read_results(tmp_path / "out").tables[0].cells))
        return cell

    monkeypatch.setattr(ResultsDirectory, "begin", look)
    here("property", models=["gcn", "gin"], columns=["sssp"])
    assert reports == [8, 8]


def test_cells_that_an_experiment_no_longer_has_are_moved_aside(here, tmp_path):
    here("property", **ONE)
    folder = tmp_path / "out" / "property"
    old = json.loads((folder / "cells" / "gcn--sssp.json").read_text())
    (folder / "cells" / "gone--sssp.json").write_text(json.dumps({**old, "row": "gone"}))
    (folder / "work" / "gone--sssp").mkdir()
    result = here("property", **ONE)
    assert [path.name for path in result.moved] == ["gone--sssp-unknown"]
    assert (result.moved[0] / "cell.json").exists()
    assert (result.moved[0] / "work").is_dir()
    assert [row.key for row in read_results(tmp_path / "out").tables[0].experiment.rows] == ["gcn"]


def test_an_out_that_is_no_folder(here, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ReproductionError, match=r"--out=.*file is a file; choose a folder"):
        here("trees", models=["gcn"], out=tmp_path / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
@pytest.mark.parametrize("mode", [0o000, 0o500])
def test_an_out_that_cannot_be_used(here, tmp_path, mode):
    out = tmp_path / "locked"
    out.mkdir(mode=mode)
    try:
        with pytest.raises(TrainingError, match="choose another"):
            here("trees", models=["gcn"], out=out)
    finally:
        out.chmod(0o700)


def test_a_lock_that_cannot_be_made(here, tmp_path, monkeypatch):
    def refuses(self, timeout):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(FileLock, "acquire", refuses)
    with pytest.raises(ReproductionError, match=r"cannot write to .*Permission denied; .* --out"):
        here("trees", models=["gcn"])


def supply_filtered_chameleon(root):
    """A made graph of the right size in the place where users put the file."""
    nodes, stream = 890, np.random.default_rng(0)
    part = np.array([np.roll(np.arange(nodes) % 5, split) for split in range(10)])
    path = root / NODE_DATASETS["chameleon-filtered"].file
    path.parent.mkdir(parents=True)
    np.savez(
        path,
        node_features=np.eye(nodes, 2325, dtype=np.float32),
        node_labels=np.arange(nodes) // 5 % 5,
        edges=stream.integers(0, nodes, (2000, 2)),
        train_masks=part < 2,
        val_masks=part == 2,
        test_masks=part > 2,
    )


def test_columns_of_files_that_users_supply(here, tmp_path):
    asked = {"models": ["gcn"], "columns": ["chameleon-filtered", "cornell-fixed"]}
    with pytest.raises(
        ReproductionError, match=r"column='cornell-fixed' has no file .*cornell_fix"
    ):
        here("heterophily", **asked)
    assert not (tmp_path / "out").exists()
    supply_filtered_chameleon(tmp_path / "data")
    result = here("heterophily", **asked)
    assert statuses(result) == {"gcn--chameleon-filtered": "done"}
    assert set(result.left_out) == {"cornell-fixed"}
    (table,) = read_results(tmp_path / "out").tables
    keys = [column.key for column in table.experiment.columns]
    assert "chameleon-filtered" in keys
    assert "cornell-fixed" not in keys
    assert table.constant(table.experiment.columns[keys.index("chameleon-filtered")]).mean > 0
    rewired = here("heterophily", models=["sdrf"], columns=["chameleon-filtered"])
    (job,) = rewired.jobs
    assert any("edges added" in note for note in job.cell.notes)  # what the transform did
    # A column that was measured stays in the table when its file is gone.
    shutil.rmtree(tmp_path / "data" / "heterophilous-graphs")
    with pytest.raises(ReproductionError, match="nothing is left to do"):
        here("heterophily", **asked)
    first, second = table.groups
    assert (first.title, second.title) == ("", "repaired data")
    assert [column.key for column in second.columns] == ["chameleon-filtered"]
