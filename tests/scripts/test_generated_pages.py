"""Pages with generated parts say what was measured."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(
    params=[
        *("document_estimators", "document_integrators", "document_selection"),
        "document_transforms",
    ]
)
def script(request):
    path = ROOT / "scripts" / f"{request.param}.py"
    spec = importlib.util.spec_from_file_location(request.param, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_was_measured(script):
    """Otherwise run the script with `--write`."""
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text) == text


def test_a_page_without_its_places_is_refused(script):
    with pytest.raises(ValueError, match="has no place"):
        script.page("# A page\n")
