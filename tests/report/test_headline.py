import pytest

from adgn.report import ReportError, headline_table


def test_measured_with_published_in_brackets(sample):
    text = headline_table(sample)
    lines = {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if "|" in line}
    score = sample.tables[0].cells["a-dgn-ws", "diameter"].score
    shown = f"{score.mean:.3f} ± {score.std:.3f}".replace("-", "−")
    assert f"**{shown}** (−0.519)" in lines["A-DGN ws"]
    assert "failed (0.791)" in lines["GAT"]
    assert "1.112" in lines["constant predictor"]
    assert "Fewer runs: GIN on diameter 2 of 4; GCNII on sssp 1 of 4." in text
    assert "over 4 runs" in text


def test_an_experiment_that_is_not_there(sample):
    with pytest.raises(ReportError, match=r"experiment='trees' is not in .*, which has property"):
        headline_table(sample, "trees")
