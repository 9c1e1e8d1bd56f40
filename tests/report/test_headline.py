import pytest

from adgn.report import headline_table, read_results
from tests.report.sample import build_results, cell, property_table


def lines_of(text):
    return {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if "|" in line}


def test_measured_with_published_in_brackets(sample):
    text = headline_table(sample.tables[0])
    lines = lines_of(text)
    score = sample.tables[0].cells["a-dgn-ws", "diameter"].score
    shown = f"{score.mean:.3f} ± {score.std:.3f}".replace("-", "−")
    assert f"**{shown}**<br>(−0.519 ± 0.181)" in lines["A-DGN ws"]
    assert "failed<br>(0.791 ± 0.022)" in lines["GAT"]
    assert "1.112" in lines["constant predictor"]
    assert "| laplacian (published as “SSSP”) |" in text
    assert "over 4 runs, or as many as a cell tells" in text


def test_a_cell_with_fewer_runs_says_so(sample):
    lines = lines_of(headline_table(sample.tables[0]))
    assert "<br>2 of 4 runs" in lines["GIN"]
    assert "<br>1 of 4 runs" in lines["GCNII"]
    assert "runs" not in lines["A-DGN ws"]


@pytest.mark.parametrize("status", ["failed", "waiting"])
def test_a_row_of_failures_is_shown_and_one_that_has_not_begun_is_not(tmp_path, status):
    def table():
        definition, cells = property_table()
        error = {"message": "no", "traceback": None, "run": None} if status == "failed" else None
        gone = [
            cell(definition, "gcn", c["column"], status=status, error=error)
            for c in cells
            if c["row"] == "gcn"
        ]
        return definition, [*gone, *(c for c in cells if c["row"] != "gcn")]

    lines = lines_of(headline_table(read_results(build_results(tmp_path / "r", [table])).tables[0]))
    assert ("GCN" in lines) == (status == "failed")
    if status == "failed":
        assert lines["GCN"].count("failed") == 4


def test_times_are_over_epochs_with_both_deviations(sample):
    text = headline_table(sample.tables[1])
    published = sample.tables[1].cells["gcn", "diameter"].published
    shown = f"**0.310 ± 0.004**<br>({published.mean:.3f} ± {published.std:.3f})"
    assert shown in lines_of(text)["GCN"]
    assert "Seconds per epoch (lower is better): mean ± standard deviation over 3 epochs" in text


def test_trees_compare_like_with_like(sample):
    text = headline_table(sample.tables[-1])
    assert "**100.00**<br>(100.00)<br>normalised 3.13<br>(3.13)" in lines_of(text)["A-DGN"]
    assert "Train accuracy, % (higher is better): one run each; in brackets" in text
    assert "Normalised: accuracy in percent per trained unit." in text


def test_complete_cells_alone(sample):
    lines = lines_of(headline_table(sample.tables[0].complete()))
    assert lines["A-DGN ws"] == lines_of(headline_table(sample.tables[0]))["A-DGN ws"]
    assert not any("of 4 runs" in line or "failed" in line for line in lines.values())
    partial = sample.tables[0].cells["gin", "diameter"]
    shown = f"{partial.score.mean:.3f}".replace("-", "−")
    assert partial.status == "partial"
    assert shown not in lines["GIN"]
    assert "–<br>(" in lines["GIN"]
    assert "waiting" not in lines["GIN"]
