import pytest
import torch

from adgn.data import TARGETS, TreeNeighborsMatch
from adgn.experiments.api import plan_cells
from adgn.experiments.outline import constant_predictor, outline
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
    assert values["texas"].mean == pytest.approx(0.8486)
