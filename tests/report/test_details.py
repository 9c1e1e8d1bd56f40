import csv
import io
from dataclasses import replace

from adgn.experiments.records import Tried
from adgn.report.csvfile import csv_table
from adgn.report.details import cell_view


def view(table, row, column):
    experiment = table.experiment
    rows = {r.key: r for r in experiment.rows}
    columns = {c.key: c for c in experiment.columns}
    return cell_view(table, rows[row], columns[column])


def test_a_cell_tells_where_its_number_comes_from(sample):
    found = view(sample.tables[0], "gcn", "sssp")
    facts = dict(found["facts"])
    assert facts["published"] == "0.847 ± 0.003 (“GCN”, “Eccentricity” in the paper)"
    assert facts["trainable parameters"] == "6061"
    assert facts["date"] == "2026-11-16"
    assert found["runs"][0] == [
        "seed",
        "split",
        "validation",
        "test",
        "best epoch",
        "epochs",
        "time",
    ]
    assert [run[0] for run in found["runs"][1:]] == ["41", "95", "12", "35"]
    assert found["runs"][1][4:] == ["540", "640", "5 min 0 s"]
    groups = dict(found["groups"])
    assert list(groups) == ["Selected settings", "Search", "Environment"]
    assert ("model.num_layers", "20") in groups["Selected settings"]
    assert ("trials", "6, 1 failed") in groups["Search"]
    assert ("model.epsilon", "1.0, 0.1") in groups["Search"]
    assert ("git_commit", "–") in groups["Environment"]


def test_a_cell_tells_how_its_published_value_was_measured(sample):
    table = sample.tables[0]
    cell = table.cells["gcn", "sssp"]
    told = {"source": "somebody, quoted", "differences": ("Other splits.", "Other features.")}
    published = cell.published.model_copy(update=told)
    cells = {**table.cells, ("gcn", "sssp"): cell.model_copy(update={"published": published})}
    facts = dict(view(replace(table, cells=cells), "gcn", "sssp")["facts"])
    assert facts["measured by"] == "somebody, quoted"
    assert facts["published otherwise"] == "Other splits. Other features."
    line = next(csv.DictReader(io.StringIO(csv_table(replace(table, cells=cells)))))
    assert "published_differs" in line


def test_settings_of_a_split(sample):
    found = view(sample.tables[2], "mlp", "texas")
    assert ("Selected settings, split 0", [("model.num_layers", "4")]) in found["groups"]


def test_a_cell_tells_what_its_search_compared(sample):
    table = sample.tables[0]
    cell = table.cells["gcn", "sssp"]
    assert view(table, "gcn", "sssp")["tried"] == []  # it was not kept
    tried = [
        {"settings": {"model.epsilon": 0.1}, "scores": [0.9, -0.25], "state": "complete"},
        {"settings": {"model.epsilon": 1.0}, "scores": [0.8, None], "state": "failed"},
        {"settings": {"model.epsilon": 0.01}, "scores": [1.25], "state": "complete"},
    ]
    told = {
        "metric": "log10_mse_paper",
        "compared_on": "val",
        "rungs": ("50 epochs", "450 epochs"),
        "configurations": tuple(Tried(**one) for one in tried),
    }
    search = cell.search.model_copy(update=told)
    cells = {**table.cells, ("gcn", "sssp"): cell.model_copy(update={"search": search})}
    found = view(replace(table, cells=cells), "gcn", "sssp")
    assert found["tried_by"] == "Configurations of the search, by validation log10_mse_paper"
    assert found["tried"] == [
        ["rank", "model.epsilon", "after 50 epochs", "after 450 epochs"],
        ["1", "0.1", "0.900", "−0.250"],
        ["2", "1.0", "0.800", "failed"],
        ["3", "0.01", "1.250", "–"],
    ]
    whole = search.model_copy(update={"rungs": (), "configurations": (Tried(**tried[2]),)})
    cells = {**table.cells, ("gcn", "sssp"): cell.model_copy(update={"search": whole})}
    heading, line = view(replace(table, cells=cells), "gcn", "sssp")["tried"]
    assert heading == ["rank", "model.epsilon", "log10 of the mean squared error"]
    assert line == ["1", "0.01", "1.250"]
    ends = ({"scores": [0.5], "state": "pruned"}, {"scores": [None], "state": "failed"})
    others = (Tried(settings={"model.epsilon": 0.5}, **end) for end in ends)
    part = whole.model_copy(update={"configurations": (*whole.configurations, *others)})
    cells = {**table.cells, ("gcn", "sssp"): cell.model_copy(update={"search": part})}
    lines = view(replace(table, cells=cells), "gcn", "sssp")["tried"]
    assert lines[2:] == [["–", "0.5", "0.500, then stopped"], ["–", "0.5", "failed"]]


def test_summaries(sample):
    table = sample.tables[0]
    assert view(table, "gat", "sssp")["summary"] == "failed"
    assert view(table, "gin", "sssp")["summary"] == "waiting"
    assert view(table, "gin", "diameter")["summary"].endswith(", 2 of 4 runs")
    assert view(table, "gcnii", "laplacian")["summary"] == "not finite, 4 runs"
    assert view(table, "gcnii", "sssp")["summary"] == "0.650, 1 of 4 runs"
    assert view(sample.tables[1], "gcn", "sssp")["summary"] == "0.310 ± 0.004, 3 epochs"
    assert view(sample.tables[4], "adgn", "radius-2")["summary"] == "100.00, 1 run"


def test_titles_of_depth_cells_name_data_set_and_layers(sample):
    assert view(sample.tables[3], "gcn", "photo-5")["title"] == "GCN, photo, 5 layers"


def test_trees_tell_both_accuracies(sample):
    facts = dict(view(sample.tables[4], "adgn", "radius-2")["facts"])
    assert facts["train accuracy"] == "100.00"
    assert facts["normalised accuracy"] == "3.13"
    assert facts["published, normalised"] == "3.13"
