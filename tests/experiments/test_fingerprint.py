import json
from pathlib import Path

import pytest

from adgn.experiments.api import plan_cells
from adgn.experiments.budgets import Search
from adgn.experiments.fingerprint import described_search, described_settings
from adgn.training import resolve_config

RESULTS = Path(__file__).parents[2] / "results" / "reproduction"


@pytest.mark.parametrize("experiment", ["property-time", "trees"])
def test_cells_that_were_measured_by_earlier_versions_still_serve(experiment):
    plans = {plan.name: plan.fingerprint for plan in plan_cells([experiment], "laptop")}
    files = list((RESULTS / experiment / "cells").glob("*.json"))
    assert files
    for file in files:
        assert json.loads(file.read_text())["fingerprint"] == plans[file.stem], file.stem


def test_a_setting_that_was_added_counts_where_it_is_used():
    usual = resolve_config("sssp")  # its model has an integrator, which the first cells did not
    other = resolve_config("sssp", {"model": {"integrator": "rk4"}})
    assert "integrator" in usual.model.options
    assert "integrator" not in described_settings(usual)["model"]
    assert described_settings(other)["model"]["integrator"] == "rk4"
    turned = resolve_config("chameleon", {"model": {"direction": "out"}})
    assert "direction" not in described_settings(resolve_config("chameleon"))["model"]
    assert described_settings(turned)["model"]["direction"] == "out"
    assert described_search(Search(prune="halving"))["prune"] == "halving"
    assert "prune" not in described_search(Search())


def test_first_settings_count_at_their_defaults_too():
    usual = described_settings(resolve_config("sssp"))
    assert usual["optimizer"]["momentum"] == 0.0
    assert usual["loop"]["clip_norm"] is None
    assert usual["seed"] == 41


def test_where_to_compute_and_to_find_data_does_not_count():
    here = resolve_config("texas")
    changes = {"device": "auto", "task": {"root": "/data"}, "checkpoint": {"every_epochs": 7}}
    assert described_settings(resolve_config(here, changes)) == described_settings(here)
