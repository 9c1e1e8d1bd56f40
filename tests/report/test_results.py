import json
import shutil

import pytest

from adgn.report import ReportError, read_results
from tests.report.sample import build_results, property_table, write


@pytest.fixture
def folder(tmp_path):
    return build_results(tmp_path / "results", [property_table])


def message(folder):
    with pytest.raises(ReportError) as error:
        read_results(folder)
    return str(error.value)


def test_every_cell_is_there_in_the_order_of_the_table(sample):
    table = sample.tables[0]
    experiment = table.experiment
    assert list(table.cells) == [
        (r.key, c.key) for r in experiment.rows for c in experiment.columns
    ]
    assert sample.statuses == {"done": 128, "partial": 2, "failed": 1, "waiting": 7}
    assert sample.dates == ("2026-11-15", "2026-11-16")


def test_a_cell_without_a_file_waits(sample):
    depth = sample.tables[3]
    assert depth.cells["gcn", "computers-30"].status == "waiting"
    assert depth.cells["gcn", "computers-20"].status == "done"


def test_the_time_is_the_score_of_a_time_experiment(sample):
    times = sample.tables[1]
    cell = times.cells["gcn", "sssp"]
    assert times.score(cell) == cell.seconds_per_epoch


def test_the_constant_predictor_of_a_depth_experiment_is_that_of_the_data_set(sample):
    depth = sample.tables[3]
    assert {depth.constant(c).mean for c in depth.experiment.columns[:7]} == {0.25}


def test_no_folder(tmp_path):
    assert f"DIR={tmp_path / 'no'} does not exist" in message(tmp_path / "no")
    (tmp_path / "file").write_text("x")
    assert "is a file, not a folder" in message(tmp_path / "file")


def test_a_folder_above_or_below_is_told(folder):
    for wrong in (folder.parent, folder / "property"):
        text = message(wrong)
        assert "it has no reproduction.json" in text
        assert text.endswith(f"such as {folder}")


@pytest.mark.parametrize("name", ["reproduction.json", "property/experiment.json"])
def test_another_format(folder, name):
    content = json.loads((folder / name).read_text())
    write(folder / name, content | {"format": 7})
    text = message(folder)
    assert f"{folder / name} has format 7" in text
    assert "reads format 1" in text


@pytest.mark.parametrize("content", ['{"format": 1, ', "\x00", "[1]", "{}"])
def test_a_damaged_cell_is_named(folder, content):
    path = folder / "property" / "cells" / "gcn--sssp.json"
    path.write_text(content)
    text = message(folder)
    assert str(path) in text
    assert "put the file back" in text


def test_a_field_of_the_wrong_type_is_named(folder):
    path = folder / "property" / "cells" / "gcn--sssp.json"
    write(path, json.loads(path.read_text()) | {"status": "ready"})
    text = message(folder)
    assert f"{path} is damaged: status:" in text


def test_a_missing_definition_is_named(folder):
    (folder / "property" / "experiment.json").unlink()
    text = message(folder)
    assert f"{folder / 'property' / 'experiment.json'} is missing" in text
    assert "adgn reproduce property --out" in text


def test_a_cell_of_an_unknown_row(folder):
    path = folder / "property" / "cells" / "gcn--sssp.json"
    write(path, json.loads(path.read_text()) | {"row": "gnc"})
    assert f"{path} belongs to row='gnc'" in message(folder)


def test_two_files_for_one_cell(folder):
    cells = folder / "property" / "cells"
    shutil.copy(cells / "gcn--sssp.json", cells / "other.json")
    assert "is a second file for row='gcn', column='sssp'" in message(folder)


def test_null_is_what_is_not_known(folder):
    path = folder / "property" / "cells" / "gcn--sssp.json"
    content = json.loads(path.read_text())
    known = ("format", "experiment", "row", "column", "budget", "status")
    write(path, {key: value if key in known else None for key, value in content.items()})
    cell = read_results(folder).tables[0].cells["gcn", "sssp"]
    assert (cell.environment, cell.runs, cell.settings, cell.score) == ({}, (), {}, None)


@pytest.mark.parametrize("name", ["../x", "../../x", "/tmp/x", "a/b", "", ".", "..", "a" * 300])
@pytest.mark.parametrize("file", ["reproduction.json", "property/experiment.json"])
def test_the_name_of_an_experiment_is_a_name(folder, file, name):
    content = json.loads((folder / file).read_text())
    changed = {"experiments": [name]} if file == "reproduction.json" else {"name": name}
    write(folder / file, content | changed)
    text = message(folder)
    assert f"{folder / file} is damaged" in text
    assert "name" in text
    assert len(text) < len(str(folder)) + 300


def test_an_experiment_in_the_folder_of_another(folder):
    path = folder / "property" / "experiment.json"
    write(path, json.loads(path.read_text()) | {"name": "trees"})
    text = message(folder)
    assert f"{path} is about the experiment 'trees', but its folder is 'property'" in text


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": 1, "notes": ' + "[" * 500 + "]" * 500])
@pytest.mark.parametrize(
    "file", ["reproduction.json", "property/experiment.json", "property/cells/gcn--sssp.json"]
)
def test_a_deeply_nested_file_is_damaged(folder, file, text):
    (folder / file).write_text(text + "}" * (text[0] == "{"))
    assert "is damaged (it is nested more than 100 levels deep)" in message(folder)
