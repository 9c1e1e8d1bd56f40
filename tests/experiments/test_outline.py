import pytest
import torch

from adgn.data import NODE_DATASETS, TARGETS, TreeNeighborsMatch
from adgn.experiments.api import plan_cells
from adgn.experiments.heterophily import REPAIRED
from adgn.experiments.outline import constant_predictor, outline, without_data
from adgn.experiments.tables import EXPERIMENTS


def test_the_constant_of_trees():
    plans = plan_cells(["trees"], "laptop", ["gcn"])
    constant = constant_predictor(plans)
    for radius in (2, 3):
        labels = TreeNeighborsMatch(radius, "train").packed.y
        share = int(torch.bincount(labels).max()) / len(labels)
        assert constant[f"radius-{radius}"].mean == pytest.approx(share, abs=1 / len(labels))


def test_the_constant_of_the_node_data_sets(data_root, monkeypatch):
    monkeypatch.setenv("ADGN_DATA", str(data_root))
    plans = plan_cells(["depth-heterophily"], "laptop", ["adgn"])
    constant = constant_predictor([plan for plan in plans if plan.column.group == "texas"])
    assert set(constant) == {"texas"}  # one for all numbers of layers
    assert 0.5 < constant["texas"].mean < 0.7


def test_times_have_no_constant():
    assert constant_predictor(plan_cells(["property-time"], "laptop")) == {}


def test_the_outline_of_a_table():
    about = outline(EXPERIMENTS["property"], "laptop", {"gcn", "adgn-ws"}, {})
    assert [row.key for row in about.rows] == ["gcn", "adgn-ws"]
    notes = {column.key: column.note for column in about.columns}
    assert notes["laplacian"] == "published as “SSSP”"
    assert notes["eccentricity"] == "never published"
    assert not any("mean nothing" in note for note in about.notes)
    assert TARGETS["sssp"].published_as == "Eccentricity"
    assert len(about.cells) == 2 * 4
    first = about.cells[0]
    assert (first.row, first.column, first.planned_runs) == ("gcn", "diameter", 4)
    assert first.published.mean == pytest.approx(0.7424)
    assert about.cells[3].published is None  # never published
    quoted = [row.title for row in about.quoted]
    assert "GRAND" in quoted
    assert "GCN" not in quoted
    heterophily = outline(EXPERIMENTS["heterophily"], "laptop", {"adgn-sum"}, {})
    values = next(row.values for row in heterophily.quoted if row.title == "GGCN")
    assert values["texas"].mean == pytest.approx(0.8486)  # a row of its own that is not run here


def test_rows_note_how_their_published_values_were_measured():
    rows = {"gcn", "mlp", "adgn-sum", "adgn-sum-both", "graphsage"}
    about = outline(EXPERIMENTS["heterophily"], "laptop", rows, {})
    notes = {row.key: " ".join(row.notes) for row in about.rows}
    assert notes["adgn-sum"] == "Nodes hear the sources of incoming edges (in), as published."
    assert "(both); not in the paper." in notes["adgn-sum-both"]
    assert "(out), as published." in notes["gcn"]
    assert "on the validation loss; here" in notes["gcn"]
    assert "Direction" not in notes["mlp"]
    assert "Direction: published, not known; here" in notes["graphsage"]
    quoted = {row.title: " ".join(row.notes) for row in about.quoted}
    assert "one fixed test set" in quoted["SDRF"]
    published = {(cell.row, cell.column): cell.published for cell in about.cells}
    assert published["adgn-sum-both", "texas"] is None
    assert published["gcn", "texas"].source == "Yan et al. (2022), quoted"
    assert any("Stopping" in one for one in published["gcn", "texas"].differences)
    # What is published of another experiment is not noted row by row.
    assert not any(r.notes for r in outline(EXPERIMENTS["property"], "laptop", {"gcn"}, {}).rows)


def test_columns_without_their_file_are_left_out(monkeypatch, tmp_path):
    experiment = EXPERIMENTS["heterophily"]
    monkeypatch.setenv("ADGN_DATA", str(tmp_path))
    missing = without_data(experiment)
    assert set(missing) == {column.key for column in REPAIRED}
    for key, word in missing.items():
        assert str(tmp_path / NODE_DATASETS[key].file) in word
        assert NODE_DATASETS[key].origin in word
    file = tmp_path / NODE_DATASETS["squirrel-filtered"].file
    file.parent.mkdir()
    file.touch()
    left_out = without_data(experiment)
    assert set(missing) - set(left_out) == {"squirrel-filtered"}
    about = outline(experiment, "laptop", {"gcn"}, {}, left_out)
    assert [column.key for column in about.columns][6:] == ["squirrel-filtered"]
    assert [cell.column for cell in about.cells][6:] == ["squirrel-filtered"]
