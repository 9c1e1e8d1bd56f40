"""The Python of pages and README that is no doctest, run as written, page by page.

The tutorial, the page on extending and the notebooks have tests of their own. Only sizes are less:
epochs, and the graphs that are generated.
"""

import re
import shutil
from functools import partial
from pathlib import Path

import pytest

import adgn
from adgn import data
from adgn.data import example_tables

ROOT = Path(__file__).resolve().parents[2]
PERFORMED = {"tutorial-own-graph.md", "extending.md"}
BLOCK = re.compile(r"^```(?:python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [code for code in found if ">>>" not in code]


PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if page.name not in PERFORMED and blocks(page)
]
NEEDS_DATA = {"data.md"}


def test_pages_have_code():
    assert {page.name for page in PAGES} >= {"index.md", "probe.md", "models.md", "data.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, request):
    if page.name in NEEDS_DATA:
        monkeypatch.setenv("ADGN_DATA", str(request.getfixturevalue("data_root")))
    few = {"train": (2, 4), "val": (1, 2), "test": (1, 2)}
    monkeypatch.setattr(data, "GraphPropertyDataset", partial(data.GraphPropertyDataset, **few))
    quick = partial(adgn.NodeClassifier, settings={"loop": {"max_epochs": 1}}, model="gcn")
    monkeypatch.setattr(adgn, "NodeClassifier", quick)
    monkeypatch.chdir(tmp_path)
    for path in example_tables():
        shutil.copy(path, tmp_path)
    names = {}
    for code in blocks(page):
        exec(compile(code, page.name, "exec"), names)
