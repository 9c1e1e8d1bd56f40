import importlib.util
from pathlib import Path

import pytest

from adgn.bench.cases import CASES
from adgn.bench.records import read
from adgn.bench.tables import Table

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
        script.markdown(Table("t", ("a",), (("x | y",),)))
