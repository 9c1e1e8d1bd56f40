import importlib.util
from pathlib import Path

import pytest

from adgn.bench.cases import CASES
from adgn.bench.records import BenchFile, WayRecord, read
from adgn.bench.tables import Table, tables

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script():
    path = ROOT / "scripts" / "document_performance.py"
    spec = importlib.util.spec_from_file_location("document_performance", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_results_say(script):
    """Otherwise run `python scripts/document_performance.py --write`."""
    assert script.PAGE.read_text(encoding="utf-8") == script.page()


def test_the_page_names_every_case_as_measured_or_not(script):
    page = script.PAGE.read_text(encoding="utf-8")
    measured = read(script.RESULTS).cases
    assert measured
    for name in CASES:
        assert (f"### {name}: " in page) == (name in measured)
        assert name in measured or f"`{name}`" in page.split("Not measured yet:")[1]


def test_a_cell_that_would_break_the_table(script):
    with pytest.raises(ValueError, match="would break the table"):
        script.markdown(Table("t", ("a",), (("x | y",),)), "It breaks.")


def test_the_conclusion_counts_targets_and_names_those_missed(script):
    rows = [
        ("texas", "time", "≥ 2", "2.5", "yes"),
        ("physics", "time", "≥ 5", "3.4", "no"),
        ("large", "memory", "≤ 1", "not measured", "–"),
    ]
    table = Table("Targets", ("case", "what", "target", "measured", "met"), tuple(rows))
    (said,) = script.conclusions(BenchFile(), [table])
    assert said == "1 of 3 targets are met, 1 are not measured. Missed: physics, time (3.4)."


def test_the_conclusion_of_a_case_is_the_ratio_to_the_best_of_pyg(script):
    texas = read(script.RESULTS).cases["texas"]
    ways = {
        "adgn": WayRecord(times=(1.0,), peak_mb=100),
        "pyg": WayRecord(times=(6.0,), peak_mb=300),
        "pyg-csr": WayRecord(times=(4.0,), peak_mb=250),
        "pyg-csr-sparse": WayRecord(times=(3.0,), peak_mb=200),
    }
    point = texas.points[0].model_copy(update={"ways": ways})
    results = BenchFile(cases={"texas": texas.model_copy(update={"points": (point,)})})
    shown = [table for table in tables(results) if table.title.startswith("texas")]
    assert script.conclusions(results, shown) == [
        "PyG as documented takes 6.0 times as long and 3.0 times the memory, "
        "at its best takes 3.0 times as long and 2.0 times the memory."
    ]
