import pytest
from typer.testing import CliRunner

from adgn.cli.app import app
from tests.report.sample import build_results, property_table, time_table


def invoke(*arguments):
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path):
    return build_results(tmp_path / "laptop", [property_table, time_table])


def test_a_report_says_what_is_done_and_where_it_is(folder):
    result = invoke(folder)
    assert result.exit_code == 0, result.output
    assert "property: 28 cells: 24 done, 2 partial, 1 failed, 1 waiting." in result.output
    assert "property-time: All 6 cells are done." in result.output
    assert "failed: gat, sssp: the loss is not finite in epoch 12 <&>" in result.output
    assert f"open {folder / 'report' / 'index.html'}" in result.output
    assert (folder / "report" / "tables" / "property.tex").exists()


def test_another_place(folder, tmp_path):
    assert invoke(folder, "--out", tmp_path / "elsewhere").exit_code == 0
    assert (tmp_path / "elsewhere" / "index.html").exists()
    assert not (folder / "report").exists()


def test_collect(folder, tmp_path):
    result = invoke(folder, "--collect", tmp_path / "small")
    # Two definitions, their list and 33 of 34 cells: one waits and holds nothing.
    assert "36 files" in result.output
    assert not (folder / "report").exists()
    assert not list((tmp_path / "small").rglob("work"))


def test_collect_and_out_do_not_go_together(folder, tmp_path):
    result = invoke(folder, "--collect", tmp_path / "a", "--out", tmp_path / "b")
    assert result.exit_code == 2
    assert not (tmp_path / "a").exists()


def test_no_results_there(tmp_path):
    result = invoke(tmp_path)
    assert isinstance(result.exception, ValueError)
    assert "is not a results directory" in str(result.exception)
