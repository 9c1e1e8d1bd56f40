"""Pages with generated parts say what was measured."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


SCRIPTS = [
    "document_estimators",
    "document_integrators",
    "document_probe",
    "document_protocols",
    "document_selection",
    "document_transforms",
]


def load(name):
    path = ROOT / "scripts" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=SCRIPTS)
def script(request):
    return load(request.param)


def test_the_page_is_what_was_measured(script):
    """Otherwise run the script with `--write`."""
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text) == text


def test_a_page_without_its_places_is_refused(script):
    with pytest.raises(ValueError, match="has no place"):
        script.page("# A page\n")


def test_the_figure_of_the_integrators_is_what_was_measured():
    """Otherwise run the script with `--write`."""
    script = load("document_integrators")
    drawn = script.drawn(json.loads(script.RESULTS.read_text(encoding="utf-8")))
    assert drawn == script.FIGURE.read_text(encoding="utf-8")
