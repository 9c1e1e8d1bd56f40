import importlib.util
import re
import shutil
from pathlib import Path

import pytest

from adgn.bench.records import read
from adgn.report import collect, read_results, reproduce_command
from tests.report.sample import TABLES, build_results, heterophily_table, trees_table

ROOT = Path(__file__).resolve().parents[2]
MARKS = ("headline", "transfer", "speed")


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
    state = script.ABSENT if found is None else "results/reproduction is there"
    wrong = f"{state}; run `python scripts/document_results.py --write`"
    for place, docs in ((script.README, "docs/"), (script.HOME, "")):
        text = place.read_text(encoding="utf-8")
        assert text == script.front(text, found, place, docs), wrong
    page = script.PAGE.read_text(encoding="utf-8")
    assert page == script.page(found), wrong
    drawn = script.images(found)
    own = {*script.IMAGES.glob("results-*.svg"), *map(script.IMAGES.joinpath, drawn)}
    assert {path.name: path.read_text(encoding="utf-8") for path in own} == drawn, wrong
    if found is None:  # then the pages must say so
        assert page.startswith(f"# Results\n\n{script.NOT_MEASURED}.")
        assert text.count(script.NOT_MEASURED) == 1, wrong


@pytest.fixture
def sampled(script, tmp_path, monkeypatch):
    """The script on results that a test made, writing into a folder of its own."""
    collect(build_results(tmp_path / "laptop"), tmp_path / "reproduction")
    for name in ("RESULTS", "PAGE", "README", "HOME", "IMAGES", "TRANSFER"):
        place = tmp_path / {"RESULTS": "reproduction"}.get(name, name.lower())
        monkeypatch.setattr(script, name, place)
    script.IMAGES.mkdir()
    marks = "".join(f"<!-- results:{n} -->\n<!-- /results:{n} -->\n" for n in MARKS)
    for place in (script.README, script.HOME):
        place.write_text(f"before\n{marks}after\n")
    script.TRANSFER.write_text((ROOT / "results" / "transfer.json").read_text())
    return script


def test_writing_all_parts_and_again_changes_nothing(sampled, monkeypatch):
    monkeypatch.setattr("sys.argv", ["document_results.py", "--write"])
    sampled.main()
    readme, page = sampled.README.read_text(), sampled.PAGE.read_text()
    title = "**Graph property prediction.** Lowest log10 of the mean squared"
    assert readme.startswith(f"before\n<!-- results:headline -->\n{title}")
    assert "No cell has all its runs yet: Graph benchmarks." in readme
    assert " of 4 runs" not in readme
    assert "\n| method | diameter |" in readme
    assert "(−0.519 ± 0.181)" in readme
    assert "](docs/images/transfer.svg)" in readme
    home = sampled.HOME.read_text()
    assert "](images/transfer.svg)" in home
    assert "docs/" not in home
    point = read(sampled.BENCH).cases["physics"].points[0].ways
    ratio = f"{point['pyg'].seconds / point['adgn'].seconds:.1f}"
    (line,) = [line for line in readme.splitlines() if line.startswith("| physics |")]
    assert ratio in line.split(" | ")
    assert readme.endswith("<!-- /results:speed -->\nafter\n")
    for title in ("Graph property prediction", "Heterophilic node classification"):
        assert f"## {title}\n" in page
    for name in re.findall(r"\(images/(.*?)\)", page):
        assert (sampled.IMAGES / name).read_text().startswith("<svg ")
    assert len(list(sampled.IMAGES.iterdir())) == len(TABLES) + 1
    sampled.main()
    assert (sampled.README.read_text(), sampled.PAGE.read_text()) == (readme, page)


def test_the_commands_are_those_of_the_rows_and_rounds_that_are_there(sampled):
    found = sampled.results()
    page = sampled.page(found)
    block = page.split("```text\n")[1].split("```")[0].splitlines()
    rows = ",".join(row.key for row in found.tables[0].experiment.rows)
    assert block[0] == f"adgn reproduce property --budget laptop --models {rows}"
    assert block[-2:] == [
        "adgn report reproduction/laptop --collect results/reproduction",
        "python scripts/document_results.py --write",
    ]
    assert len(block) == len(TABLES) + 2
    assert "Where a cell has fewer runs than planned" in page
    whole = found.tables[0].complete()
    assert f"Made by `{reproduce_command(whole)}`" in sampled.headline(found)


def test_any_experiments_are_enough(script, tmp_path):
    folder = build_results(tmp_path / "laptop", [heterophily_table, trees_table])
    found = read_results(folder)
    page = script.page(found)
    assert "## Tree-NeighborsMatch\n" in page
    assert "## Not measured yet\n\nThe experiments `property`, `property-time`" in page
    assert "Where a cell has fewer runs than planned" not in page
    front = script.headline(found)
    assert "**Tree-NeighborsMatch.** " in front
    assert "No cell has all its runs yet: Graph property prediction, Graph benchmarks." in front
    names = {"results-heterophily.svg", "results-trees.svg", "transfer.svg"}
    assert set(script.images(found)) == names


def test_without_results_all_parts_say_so(sampled, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["document_results.py", "--write"])
    sampled.main()
    shutil.rmtree(sampled.RESULTS)
    sampled.TRANSFER.unlink()
    sampled.main()
    readme = sampled.README.read_text()
    assert readme.count("Not measured yet: ") == 2
    assert sampled.PAGE.read_text().startswith("# Results\n\nNot measured yet.")
    assert [path.name for path in sampled.IMAGES.iterdir()] == ["transfer.svg"]  # not its own
    assert "results/reproduction is not there" in capsys.readouterr().err


def test_a_place_that_is_missing_is_named(sampled):
    def front(old, new):
        text = sampled.README.read_text().replace(old, new)
        return sampled.front(text, None, sampled.README, "docs/")

    with pytest.raises(ValueError, match=r"has no place <!-- results:transfer --> …"):
        front("transfer", "speed")
    with pytest.raises(
        ValueError, match=r"has a place for transfers; there are headline, transfer"
    ):
        front("transfer", "transfers")
    with pytest.raises(ValueError, match=r"has no place <!-- results:transfer --> …"):
        front("/results:transfer", "")


def test_the_front_page_has_the_rows_of_the_paper_and_those_that_are_best(script):
    found = script.read_results(script.RESULTS)
    (table,) = [t for t in found.tables if t.experiment.name == "heterophily"]
    kept = script.front_rows(table.complete())
    rows = {row.key: row for row in table.experiment.rows}
    for key in rows:
        cells = [table.cells[key, column.key] for column in table.experiment.columns]
        if any(cell.published for cell in cells):
            assert key in kept
    for column in table.experiment.columns:
        means = {key: table.compared(row, column) for key, row in rows.items()}
        best = max(mean for mean in means.values() if mean is not None)
        assert kept & {key for key, mean in means.items() if mean == best}
    text = script.headline(found)
    for key in rows.keys() - kept:
        assert f"| {rows[key].title} |" not in text
    assert "more rows, which the paper does not have: [Results](docs/results.md#hetero" in text
