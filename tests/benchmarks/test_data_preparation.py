import importlib.util
import json
from pathlib import Path

import pytest

from adgn.data import CATALOGUE, NODE_DATASETS

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "data_preparation.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("data_preparation", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_the_docs_is_the_one_of_the_results(script):
    results = json.loads(script.RESULTS.read_text())
    assert script.table(results) in script.DOCS.read_text()


def test_every_data_set_was_measured(script):
    results = json.loads(script.RESULTS.read_text())
    supplied = {name for name, entry in NODE_DATASETS.items() if entry.file}
    assert set(results["datasets"]) == set(CATALOGUE) - supplied
    for name, entry in results["datasets"].items():
        assert ("prepare" in entry) == CATALOGUE[name].on_disk


def test_measures_a_step(script, data_root):
    measured = script.measure_here("texas", "load", str(data_root))
    assert 0 < measured["seconds"] < 60
    assert measured["peak_mb"] >= measured["imports_mb"] > 10


def test_the_table_is_replaced_between_its_marks(script, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{script.BEGIN}\nold\n{script.END}\nafter\n")
    monkeypatch.setattr(script, "DOCS", page)
    results = json.loads(script.RESULTS.read_text())
    script.write_table(results)
    script.write_table(results)
    text = page.read_text()
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert text.count(script.table(results)) == 1
