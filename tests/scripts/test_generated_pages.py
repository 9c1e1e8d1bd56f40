"""Pages with generated parts say what was measured."""

import importlib.util
import itertools
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


SCRIPTS = [
    "document_distributed",
    "document_estimators",
    "document_integrators",
    "document_probe",
    "document_mislabelled",
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


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NUMBERS = {"generated", "measured", "results"}  # the marks of parts that are made of measurements
LISTS = {"tasks", "settings"}  # generated, but of words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_begins_with_what_it_is_for(page):
    text = page.read_text(encoding="utf-8")
    first = text[text.index("\n# ") if text.startswith("---") else 0 :].lstrip().split("\n\n")[1]
    assert re.match(r"[A-Z`][^|]+[.:]", first), first


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_generated_table_begins_with_its_conclusion(page):
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.strip()]
    for before, line in itertools.pairwise(lines):
        mark = re.match(r"<!-- (\w+): ?(\w*)", before)
        if mark and mark[1] in NUMBERS and mark[2] not in LISTS:
            assert not line.startswith("|"), f"{page.name}: {before} {line}"
