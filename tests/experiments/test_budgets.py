from collections import defaultdict
from pathlib import Path
from statistics import median

import pytest

from adgn.experiments.api import plan_cells
from adgn.experiments.budgets import BUDGETS, LAPTOP_TREE_PASSES, SEARCH_SEED
from adgn.experiments.heterophily import HETEROPHILIC
from adgn.experiments.plan import plan_cell
from adgn.experiments.records import Cell, read_record
from adgn.experiments.tables import EXPERIMENTS
from adgn.selection.halving import rungs_of
from adgn.selection.spaces import grid_size, random_points

RESULTS = Path(__file__).parents[2] / "results" / "reproduction"


def test_every_budget_knows_every_experiment():
    for name, budgets in BUDGETS.items():
        assert set(budgets) == set(EXPERIMENTS), name


@pytest.mark.parametrize("name", ["property", "benchmarks", "heterophily"])
def test_random_searches_see_every_value(name):
    for plan in plan_cells([name], "laptop"):
        points = list(random_points(plan.space, plan.tried, SEARCH_SEED))
        assert len(points) == plan.tried
        for key, values in plan.space.items():
            assert {point[key] for point in points} == set(values)


def test_the_texts_tell_the_rungs():
    for name in ("property", "benchmarks", "heterophily"):
        for plan in plan_cells([name], "laptop"):
            loop, patience = plan.base.loop, plan.base.stopping.patience
            search = plan.budget.search
            epochs, runs = search.max_epochs or loop.max_epochs, len(search.splits or (0,))
            rungs = rungs_of(epochs, patience, runs, first=search.first_rung)
            words = f"all for {rungs[0].epochs} epochs"
            assert words in plan.budget.text
            assert f"third for {rungs[1].epochs}" in plan.budget.text
            assert rungs[2].epochs == epochs
            assert f"at most {epochs} epochs" in plan.budget.text
            assert f"at most {loop.max_epochs} epochs" in plan.budget.text


def test_the_search_of_heterophilic_graphs_is_small_and_near_published_settings():
    for plan in plan_cells(["heterophily"], "laptop"):
        assert 4 <= plan.tried <= 16
        assert plan.tried == grid_size(plan.space), plan.name
    assert plan_cell("heterophily", "gcnii", "texas", "laptop").space["model.num_layers"][0] == 32


def test_a_row_of_six_heterophilic_graphs_takes_about_what_it_took():
    plans = plan_cells(["heterophily"], "laptop", ["gcn"])
    seconds = {plan.column.key: plan.seconds_left(None) for plan in plans}
    estimate = sum(seconds[column.key] for column in HETEROPHILIC)
    took = defaultdict(float)
    for file in (RESULTS / "heterophily" / "cells").glob("*.json"):
        cell = read_record(file, Cell, ValueError)
        took[cell.row] += (cell.search.seconds or 0) + sum(run.seconds or 0 for run in cell.runs)
    assert median(took.values()) / 3 < estimate < median(took.values()) * 3  # machines differ


def test_small_configurations_of_one_model_are_left_out_where_a_budget_says_so():
    plan = plan_cell("property", "adgn-ws", "sssp", "laptop")
    assert plan.space["model.num_layers"] == [20]
    assert plan.space["model.hidden_channels"] == [30]
    assert plan.space["model.epsilon"] == [1.0, 1e-1, 1e-2, 1e-3]
    assert f"{grid_size(plan.space)} of 192" in plan.budget.text
    rival = plan_cell("property", "gcn", "sssp", "laptop").space
    assert rival["model.num_layers"] == [1, 5, 10, 20]


def test_the_passes_over_trees_are_those_of_the_text():
    for plan in plan_cells(["trees"], "laptop"):
        loop, radius = plan.base.loop, plan.base.task.radius
        assert loop.max_epochs * loop.passes_per_epoch == LAPTOP_TREE_PASSES[radius]
        assert f"{radius}: {LAPTOP_TREE_PASSES[radius]}" in plan.budget.text


def test_settings_of_single_cells_reach_these_cells_alone():
    units = {
        (plan.row.key, plan.column.key): plan.base.model.hidden_channels
        for plan in plan_cells(["trees"], "laptop")
    }
    assert units.pop(("adgn", "radius-4")) == 86
    assert set(units.values()) == {32}


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_cells_with_settings_of_their_own_exist_and_no_search_overrides_them(name, budget):
    plans = {plan.name: plan for plan in plan_cells([name], budget)}
    for cell, settings in BUDGETS[budget][name].by_cell.items():
        searched = plans[cell].space or {}
        own = {f"{section}.{key}" for section, values in settings.items() for key in values}
        assert not own & set(searched)
