import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script():
    path = ROOT / "scripts" / "document_training.py"
    spec = importlib.util.spec_from_file_location("document_training", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_configuration_says(script):
    """Otherwise run `python scripts/document_training.py --write`."""
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text) == text


def test_a_page_without_its_places_is_refused(script):
    with pytest.raises(ValueError, match="has no place"):
        script.page("# Training\n")
