import os

import pytest

from adgn.experiments.errors import ReproductionError
from adgn.experiments.plan import plan_cell
from adgn.experiments.results import ResultsDirectory


@pytest.fixture
def plan():
    return plan_cell("property", "gcn", "sssp", "smoke")


@pytest.mark.parametrize("mark", ["a/../../../x", "../../../x", "\n", ".."])
def test_results_are_never_moved_out_of_the_directory(tmp_path, plan, mark):
    results = ResultsDirectory(tmp_path / "deep" / "out")
    cell, _ = results.begin(plan)
    changed = cell.model_copy(update={"fingerprint": mark})
    results.cell_file(plan).write_text(changed.model_dump_json())
    _, by_cell = results.begin(plan)
    results.claim_work(plan)
    (results.work_folder(plan) / "fingerprint").write_text(mark)
    _, by_work = results.begin(plan)
    aside = results.path / "property" / "outdated"
    assert by_cell == aside / "gcn--sssp-unknown"
    assert by_work == aside / "gcn--sssp-unknown-2"
    assert sorted(aside.iterdir()) == [by_cell, by_work]


@pytest.mark.parametrize("file", ["reproduction.json", "property/cells/gcn--sssp.json"])
def test_a_deeply_nested_file_is_told(tmp_path, plan, file):
    results = ResultsDirectory(tmp_path)
    results.open("smoke")
    results.begin(plan)
    (tmp_path / file).write_text("[" * 100_000)
    with pytest.raises(ReproductionError, match=r"is damaged .*nested more than 100"):
        results.open("smoke")
        results.begin(plan)


def test_a_pipe_in_the_place_of_a_file_is_told(tmp_path, plan):
    results = ResultsDirectory(tmp_path)
    results.begin(plan)
    results.cell_file(plan).unlink()
    os.mkfifo(results.cell_file(plan))
    with pytest.raises(ReproductionError, match=r"it is not a file; put the file back"):
        results.begin(plan)
