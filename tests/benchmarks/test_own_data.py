import importlib.util
import json
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "own_data.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("own_data", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_the_docs_is_the_one_of_the_results(script):
    results = json.loads(script.RESULTS.read_text())
    assert script.table(results) in script.DOCS.read_text()


def test_a_million_nodes_were_read_within_a_minute_and_four_gigabytes(script):
    runs = json.loads(script.RESULTS.read_text())["runs"]
    assert set(runs) == set(script.IDS)
    for run in runs.values():
        assert run["nodes"] == 1_000_000
        assert run["edges"] > 9_990_000  # a few of the ten million are drawn twice
        assert run["read_seconds"] + run["features_seconds"] < 60
        assert run["peak_mb"] < 4 * 1024


@pytest.mark.parametrize("ids", ["numbers", "text"])
def test_measures_a_small_graph(script, tmp_path, ids):
    script.write_files(tmp_path, ids, nodes=200, edges=1000)
    measured = script.measure_here(tmp_path)
    assert measured["nodes"] == measured["labels"] == 200
    assert 900 < measured["edges"] <= 1000
    assert measured["peak_mb"] >= measured["imports_mb"] > 10
