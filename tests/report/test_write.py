import pytest

from adgn.report import ReportError, read_results, write_report
from adgn.report.write import experiment_figure, markdown_report
from tests.report.sample import build_results, property_table, time_table


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.long
def test_all_files_and_nothing_else(sample, report):
    out = report.page.parent
    names = [t.experiment.name for t in sample.tables]
    expected = {"index.html"}
    expected |= {f"tables/{n}.{end}" for n in names for end in ("md", "csv", "tex")}
    expected |= {f"figures/{n}.{end}" for n in names for end in ("svg", "png")}
    assert set(files(out)) == expected
    assert set(report.files) == {out / name for name in expected}
    assert report.page == out / "index.html"


def test_an_experiment_that_has_not_begun(tmp_path):
    def empty():
        return property_table()[0], []

    results = read_results(build_results(tmp_path / "r", [empty]))
    written = write_report(results, tmp_path / "out")
    assert not (tmp_path / "out" / "figures").exists()
    assert "28 cells: 28 waiting." in written.page.read_text()
    with pytest.raises(ReportError, match="experiment='property' has no measured cell"):
        experiment_figure(results.tables[0])


def test_the_markdown_page_tells_notes_and_failures(sample):
    text = markdown_report(sample.tables[0], level=2)
    assert text.startswith("## Graph property prediction\n")
    assert "28 cells: 24 done, 2 partial, 1 failed, 1 waiting. Budget laptop: random" in text
    assert "- The published columns are mislabelled" in text
    assert "- gat, sssp: the loss is not finite in epoch 12 &lt;&amp;&gt;" in text


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "out").write_text("a file")
    sample = read_results(build_results(tmp_path / "r", [time_table]))
    with pytest.raises(ReportError, match=r"cannot write .*give another folder with --out"):
        write_report(sample, tmp_path / "out")
