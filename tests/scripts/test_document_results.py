import importlib.util
import re
from pathlib import Path

import pytest

from adgn.bench import read
from adgn.report import collect
from tests.report.sample import build_results

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script():
    path = ROOT / "scripts" / "document_results.py"
    spec = importlib.util.spec_from_file_location("document_results", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_documents_are_what_the_results_say(script):
    """Otherwise run `python scripts/document_results.py --write`."""
    found = script.results()
    text = script.README.read_text(encoding="utf-8")
    assert text == script.readme(text, found)
    if found is None:
        assert not script.PAGE.exists()
        assert not re.search(r"<!-- results:(headline|figure) -->", text)
        assert not list(script.IMAGES.glob("results-*.svg"))
    else:
        assert script.PAGE.read_text(encoding="utf-8") == script.page(found)
        names = set(script.images(found))
        assert {path.name for path in script.IMAGES.glob("results-*.svg")} == names
        for name, content in script.images(found).items():
            assert (script.IMAGES / name).read_text(encoding="utf-8") == content
        assert set(re.findall(r"<!-- results:(\w+) -->", text)) == {"headline", "speed", "figure"}


@pytest.fixture
def sampled(script, tmp_path, monkeypatch):
    """The script on results that a test made, writing into a folder of its own."""
    collect(build_results(tmp_path / "laptop"), tmp_path / "reproduction")
    for name in ("RESULTS", "PAGE", "README", "IMAGES"):
        place = tmp_path / {"RESULTS": "reproduction"}.get(name, name.lower())
        monkeypatch.setattr(script, name, place)
    script.IMAGES.mkdir()
    marks = "".join(f"<!-- results:{n} -->\n<!-- /results:{n} -->\n" for n in ("headline", "speed"))
    script.README.write_text(f"before\n{marks}after\n")
    return script


def test_writing_all_parts_and_again_changes_nothing(sampled, monkeypatch):
    monkeypatch.setattr("sys.argv", ["document_results.py", "--write"])
    sampled.main()
    readme, page = sampled.README.read_text(), sampled.PAGE.read_text()
    assert readme.startswith("before\n<!-- results:headline -->\n|  | diameter |")
    assert "(−0.519)" in readme
    point = read(sampled.BENCH).cases["physics"].points[0].ways
    ratio = f"{point['pyg'].seconds / point['adgn'].seconds:.1f}"
    (line,) = [line for line in readme.splitlines() if line.startswith("| physics |")]
    assert ratio in line.split(" | ")
    assert readme.endswith("<!-- /results:speed -->\nafter\n")
    for title in ("Graph property prediction", "Heterophilic node classification"):
        assert f"## {title}\n" in page
    for name in re.findall(r"\(images/(.*?)\)", page):
        assert (sampled.IMAGES / name).read_text().startswith("<svg ")
    assert len(list(sampled.IMAGES.iterdir())) == 4
    sampled.main()
    assert (sampled.README.read_text(), sampled.PAGE.read_text()) == (readme, page)


def test_a_place_in_the_readme_without_results_is_an_error(sampled):
    with pytest.raises(ValueError, match=r"has a place for headline, but .* is not there"):
        sampled.readme(sampled.README.read_text(), None)
