import importlib.util
import json
from pathlib import Path

import pytest

from adgn.nn import available_models, model_spec

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script():
    path = ROOT / "scripts" / "document_models.py"
    spec = importlib.util.spec_from_file_location("document_models", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_registry_says(script):
    """Otherwise run `python scripts/document_models.py --write`."""
    assert script.PAGE.read_text(encoding="utf-8") == script.page()


@pytest.mark.parametrize("name", available_models())
def test_every_model_has_an_entry_and_measurements(script, name):
    page = script.PAGE.read_text(encoding="utf-8")
    spec = model_spec(name)
    assert f"### {name}\n" in page
    assert spec.paper in page
    assert all(f"| `{option.name}` |" in page for option in spec.describe_options())
    figures = json.loads(script.FIGURES.read_text(encoding="utf-8"))["models"][name]
    assert figures["step_ms"]["median"] >= figures["step_ms"]["min"] > 0
    assert figures["peak_mb"] > 0
    counts = figures["parameters"]
    assert counts["total"] == counts["encoder"] + counts["propagation"] + counts["readout"]
