import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script():
    path = ROOT / "scripts" / "document_compatibility.py"
    spec = importlib.util.spec_from_file_location("document_compatibility", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and workers look it up
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_the_page_is_what_the_attempts_say(script):
    """Otherwise run `python scripts/document_compatibility.py --write`."""
    assert script.PAGE.read_text(encoding="utf-8") == script.page()


def test_an_attempt_that_fails_is_told(script):
    def fail(layer):
        raise RuntimeError

    assert script.Check("it", "", fail).answer(script.AntiSymmetricConv) == "no"
    assert script.Check("it", "", lambda layer: None).answer(script.AntiSymmetricConv) == "yes"
