import threading

import pytest

from adgn.experiments.cells import new_cell, write_cell
from adgn.experiments.plan import plan_cell
from adgn.experiments.results import ResultsDirectory
from adgn.experiments.steps import do_step
from adgn.training import Interrupted


def settings_of(plan, results):
    saved = []
    do_step(plan, new_cell(plan), 0, results.work_folder(plan), threading.Event(), saved.append)
    return saved[-1]


def test_settings_are_borrowed_from_the_same_row_and_data_set(tmp_path):
    results = ResultsDirectory(tmp_path)
    lender = plan_cell("benchmarks", "gcn", "photo", "laptop")
    selected = {"optimizer.lr": 0.01, "model.num_layers": 2}
    write_cell(results.cell_file(lender), {**new_cell(lender), "settings": selected})
    borrowed = settings_of(plan_cell("depth", "gcn", "photo-5", "laptop"), results)
    assert borrowed["settings"] == {"optimizer.lr": 0.01}  # the depth is the column's
    assert "as selected in benchmarks (gcn, photo)" in borrowed["search"]["how"]
    own = settings_of(plan_cell("depth", "gat", "photo-5", "laptop"), results)
    assert own["settings"] == {}
    assert "the protocol's defaults" in own["search"]["how"]


def test_settings_of_another_definition_are_not_borrowed(tmp_path):
    results = ResultsDirectory(tmp_path)
    lender = plan_cell("benchmarks", "gcn", "photo", "laptop")
    cell = {**new_cell(lender), "settings": {"optimizer.lr": 0.01}, "fingerprint": "other"}
    write_cell(results.cell_file(lender), cell)
    borrowed = settings_of(plan_cell("depth", "gcn", "photo-5", "laptop"), results)
    assert borrowed["settings"] == {}


def test_a_stop_between_two_runs(tmp_path):
    plan = plan_cell("trees", "gcn", "radius-2", "smoke")
    stop = threading.Event()
    stop.set()
    saved = []
    with pytest.raises(Interrupted):
        do_step(plan, new_cell(plan), 1, tmp_path, stop, saved.append)
    assert saved == []


def test_normalised_accuracy_is_in_the_cell(tmp_path):
    plan = plan_cell("trees", "gcn", "radius-2", "smoke")
    saved = []
    do_step(plan, new_cell(plan), 1, tmp_path / "a", threading.Event(), saved.append)
    (cell,) = saved
    train = cell["train"]
    assert cell["score"] == train["accuracy"]
    expected = 100 * train["accuracy"]["mean"] / (4 * 2)  # 4 units, as many layers as the radius
    assert train["normalised_accuracy"]["mean"] == pytest.approx(expected)
    assert cell["notes"] == [f"normalised accuracy {expected:.2f}"]
    assert cell["curve"]["metric"] == "accuracy"
