"""The page on several ranks says what was measured, the unpleasant too."""

import json

import pytest

from tests.scripts.test_generated_pages import load

CASE = {
    "case": "physics",
    "ranks": 2,
    "steps": 14,
    "edges": 1e7,
    "one_process_seconds": 0.1,
    "ranks_seconds": 0.12,
    "waited_seconds": 0.01,
    "ratio": 1.2,
    "received_bytes_per_step": 2_000_000.0,
    "partition_bytes_per_step": 2_000_000,
    "load_before": 0.3,
}
ABOUT = {
    "date": "2026-01-01",
    "environment": {"processor": "a processor", "git_commit": "abcdef123"},
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "All are within the goal of at most 1.25 times"),
        ({}, "The bytes that come in are those that the partition says."),
        (
            {"ratio": 1.3},
            "The goal of at most 1.25 times the time of one process is missed by Phys",
        ),
        ({"received_bytes_per_step": 1.0}, "of Physics, partitioned are not those of the partitio"),
    ],
)
def test_goals_that_are_met_and_missed(change, said):
    text = load("document_distributed").steps({**ABOUT, "cases": [{**CASE, **change}]})
    assert said in text
    assert "a processor, 2026-01-01, commit abcdef1: `python -m benchmarks.distributed`" in text
    if not change:
        assert "| Physics, partitioned | 100.0 | 120.0 | 10.0 | 1.20 | 2.00 | 2.00 |" in text


def test_a_page_before_and_after_steps_are_measured(tmp_path, monkeypatch):
    script = load("document_distributed")
    text = script.PAGE.read_text(encoding="utf-8")
    file = tmp_path / "results" / "distributed.json"
    file.parent.mkdir()
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "STEPS", file)
    before = script.page(text)
    assert "Not measured yet: there is no `results/distributed.json`." in before
    batches = {**CASE, "case": "batches", "received_bytes_per_step": 0}
    batches["partition_bytes_per_step"] = 0
    file.write_text(json.dumps({**ABOUT, "cases": [batches, CASE]}), encoding="utf-8")
    after = script.page(before)
    assert "Not measured yet" not in after and script.page(after) == after
    assert "<!-- generated: rank steps -->\nAll are within the goal" in after
    assert "| `sssp`, batches of 512 graphs | 100.0 | 120.0 | 10.0 | 1.20 | – | – |" in after
