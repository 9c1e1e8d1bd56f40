"""README, CONTRIBUTING and CITATION: their links lead somewhere, and what they say is so."""

import re
from pathlib import Path

import pytest
import yaml

tomllib = pytest.importorskip("tomllib")

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def anchors(page):
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_every_link_leads_somewhere(name):
    links = LINK.findall((ROOT / name).read_text(encoding="utf-8"))
    assert len(links) >= 3
    for link in links:
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        assert (ROOT / path).is_file(), link
        assert not anchor or anchor in anchors(ROOT / path), link


def test_the_readme_names_every_page_of_the_menu():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert {name for name in pages if f"(docs/{name})" not in text} == set()


def test_the_citation_is_of_this_package_and_of_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    paper = citation["preferred-citation"]
    assert [a["family-names"] for a in paper["authors"]] == ["Gravina", "Bacciu", "Gallicchio"]
    assert paper["url"] in (ROOT / "README.md").read_text(encoding="utf-8")
