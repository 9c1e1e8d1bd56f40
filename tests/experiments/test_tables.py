from pathlib import Path

import pytest

from adgn.data import NODE_DATASETS
from adgn.experiments.tables import EXPERIMENTS
from adgn.nn import model_spec
from adgn.tasks.published import published_tables

DOCS = Path(__file__).parents[2] / "docs" / "reproducing.md"
SMOKE_TESTS = Path(__file__).parents[1] / "cli" / "test_reproduce.py"


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_every_experiment_is_documented_and_tested(name):
    assert f"`{name}`" in DOCS.read_text()
    assert f'"{name}"' in SMOKE_TESTS.read_text()


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=list(EXPERIMENTS))
def test_keys_are_unique_and_models_known(experiment):
    for parts in (experiment.rows, experiment.columns):
        keys = [part.key for part in parts]
        assert len(set(keys)) == len(keys)
        assert not any("--" in key or "/" in key for key in keys)
    for row in experiment.rows:
        assert model_spec(row.model).name == row.model


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("property", "graph_property_prediction"),
        ("property-time", "graph_property_prediction_seconds_per_epoch"),
        ("benchmarks", "graph_benchmarks"),
        ("heterophily", "heterophilic_benchmarks"),
        ("trees", "tree_neighbors_match"),
    ],
)
def test_every_published_row_is_run_or_quoted(name, table):
    experiment = EXPERIMENTS[name]
    here = {row.title for row in experiment.rows} | set(experiment.quoted)
    assert set(published_tables()[table]["rows"]) <= here


def test_defects_of_the_data_are_noted():
    notes = " ".join(EXPERIMENTS["heterophily"].notes)
    for name in ("cornell", "chameleon", "squirrel"):
        assert NODE_DATASETS[name].title in notes
