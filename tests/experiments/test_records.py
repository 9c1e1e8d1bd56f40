import json
import math
from pathlib import Path

import pytest

from adgn.experiments.errors import ReproductionError
from adgn.experiments.plan import plan_cell
from adgn.experiments.records import Cell, Head, Moments, Outline, read_record, write_record

RESULTS = Path(__file__).parents[2] / "results" / "reproduction"
CELLS = sorted(RESULTS.glob("*/cells/*.json"))


def test_committed_results_are_read_and_written_unchanged(tmp_path):
    kinds = {"reproduction.json": Head, "experiment.json": Outline}
    files = [RESULTS / "reproduction.json", *RESULTS.glob("*/experiment.json"), *CELLS]
    assert len(files) > 90
    for file in files:
        write_record(tmp_path / "copy", read_record(file, kinds.get(file.name, Cell), ValueError))
        written, there = (json.loads(path.read_text()) for path in (tmp_path / "copy", file))
        assert kept(there, written) == there, file
        assert [key for key in written if key in there] == [*there], file


def kept(there, written):
    """What is written, without the fields that records have got since."""
    if isinstance(there, dict):
        return {key: kept(value, written[key]) for key, value in there.items()}
    if isinstance(there, list):
        return [kept(*pair) for pair in zip(there, written, strict=True)]
    return written


def test_committed_cells_are_measured_again_only_where_another_search_is_made():
    same = 0
    for file in CELLS:
        cell = read_record(file, Cell, ValueError)
        plan = plan_cell(cell.experiment, cell.row, cell.column, cell.budget)
        searched = {} if cell.search is None else cell.search.space
        alike = json.loads(json.dumps(searched)) == json.loads(json.dumps(plan.space or {}))
        way = plan.budget.search
        if alike and cell.search is not None and way is not None:
            alike = (way.prune == "halving") == ("halving" in cell.search.how)
        assert (cell.fingerprint == plan.fingerprint) == alike, file
        if alike:
            same += 1
            assert cell.status != "done" or plan.next_step(cell) is None, file
    assert same >= 48  # times per epoch and trees


def test_a_number_that_is_not_finite_is_none():
    assert Moments(mean=-math.inf, std=math.nan) == Moments(mean=None, std=None)


def test_fields_of_a_later_version_are_no_mistake(tmp_path):
    content = plan_cell("trees", "gcn", "radius-2", "smoke").new_cell().model_dump(mode="json")
    (tmp_path / "cell.json").write_text(json.dumps({**content, "colour": "blue"}))
    assert read_record(tmp_path / "cell.json", Cell, ValueError).column == "radius-2"


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 1, "row": 3}', '{"format": 2}'])
def test_a_file_that_cannot_be_used_is_named(tmp_path, content):
    file = tmp_path / "cell.json"
    file.write_text(content)
    with pytest.raises(ReproductionError, match=r"cell\.json .*(put the file|Use the)"):
        read_record(file, Cell, ReproductionError)
