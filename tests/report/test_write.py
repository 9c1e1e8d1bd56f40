import json

import pytest

from adgn.experiments.tables import EXPERIMENTS
from adgn.report import ReportError, collect, read_results, write_report
from adgn.report.write import experiment_figure, markdown_report
from tests.report.sample import TABLES, build_results, property_table, time_table, write


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_all_files_and_nothing_else(sample, tmp_path):
    written = write_report(sample, tmp_path / "out")
    names = [t.experiment.name for t in sample.tables]
    expected = {"index.html"}
    expected |= {f"tables/{n}.{end}" for n in names for end in ("md", "csv", "tex")}
    expected |= {f"figures/{n}.{end}" for n in names for end in ("svg", "png")}
    assert set(files(tmp_path / "out")) == expected
    assert set(written.files) == {tmp_path / "out" / name for name in expected}
    assert written.page == tmp_path / "out" / "index.html"


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


def test_collecting_leaves_out_the_work(sample_folder, tmp_path):
    copied = collect(sample_folder, tmp_path / "small")
    before, after = files(sample_folder), files(tmp_path / "small")
    kept = {name for name in before if "/work/" not in name and not name.startswith("report/")}
    assert set(after) == kept == {str(p.relative_to(tmp_path / "small")) for p in copied}
    about = "reproduction.json"
    assert all(after[name] == before[name] for name in kept - {about})
    small, whole = (read_results(path) for path in (tmp_path / "small", sample_folder))
    names = [table.experiment.name for table in small.tables]
    assert names == [name for name in EXPERIMENTS if name in names]
    assert sorted(small.tables, key=str) == sorted(whole.tables, key=str)
    assert (small.budget, small.version) == (whole.budget, whole.version)


def test_collecting_again_replaces_an_experiment_and_keeps_the_others(tmp_path):
    small = tmp_path / "small"
    collect(build_results(tmp_path / "all", TABLES[:3]), small)

    def fewer():
        definition, cells = time_table()
        return definition, cells[:-1]

    collect(build_results(tmp_path / "later", [fewer]), small)
    results = read_results(small)
    found = {t.experiment.name: t for t in results.tables}
    assert set(found) == {"property", "property-time", "heterophily"}
    assert found["property-time"].cells["a-dgn-ws", "sssp"].status == "waiting"


def test_collecting_where_it_would_mix_or_destroy(tmp_path):
    folder = build_results(tmp_path / "a", [time_table])
    with pytest.raises(ReportError, match="is DIR itself"):
        collect(folder, folder)
    other = build_results(tmp_path / "b", [time_table])
    head = json.loads((other / "reproduction.json").read_text())
    write(other / "reproduction.json", head | {"budget": "smoke"})
    with pytest.raises(ReportError, match=r"has results of budget 'laptop'.*'smoke'"):
        collect(other, folder)


def test_no_name_in_a_file_leads_out_of_the_report_or_the_collection(tmp_path):
    folder = build_results(tmp_path / "results", [time_table])
    outside = tmp_path / "victim" / "cells" / "precious.json"
    write(outside, {})
    about = folder / "property-time" / "experiment.json"
    evil = json.loads(about.read_text()) | {"name": "../../victim"}
    write(about, evil)
    write(tmp_path / "victim" / "experiment.json", evil)
    before = files(tmp_path)
    for names in (["property-time"], ["../victim"]):
        head = json.loads((folder / "reproduction.json").read_text()) | {"experiments": names}
        write(folder / "reproduction.json", head)
        before |= {"results/reproduction.json": (folder / "reproduction.json").read_bytes()}
        with pytest.raises(ReportError, match="is not a name"):
            write_report(read_results(folder), tmp_path / "deep" / "out")
        with pytest.raises(ReportError, match="is not a name"):
            collect(folder, tmp_path / "deep" / "copy")
    assert files(tmp_path) == before
