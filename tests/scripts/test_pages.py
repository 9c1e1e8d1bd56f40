from pathlib import Path

import pages
import pytest

PAGE = Path("docs/some.md")


def test_parts_replace_what_was_between_their_marks():
    text = "a\n<!-- generated: x -->\nold\n<!-- end of x -->\nb\n"
    filled = pages.fill_places(text, {"x": "new\n"}, PAGE)
    assert filled == "a\n<!-- generated: x -->\nnew\n<!-- end of x -->\nb\n"
    assert pages.fill_places(filled, {"x": "new"}, PAGE) == filled


def test_marks_of_another_form():
    text = "<!-- results:x -->\n<!-- /results:x -->"
    marks = ("<!-- results:{} -->", "<!-- /results:{} -->")
    filled = pages.fill_places(text, {"x": "new"}, PAGE, marks)
    assert filled == "<!-- results:x -->\nnew\n<!-- /results:x -->"


@pytest.mark.parametrize("text", ["", "<!-- generated: x -->", "<!-- end of x -->"])
def test_a_place_that_is_missing_or_left_open_is_an_error(text):
    with pytest.raises(ValueError, match=r"docs/some.md has no place <!-- generated: x -->"):
        pages.fill_places(text, {"x": "new"}, PAGE)


def test_a_table():
    expected = "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    assert pages.markdown_table(["a", "b"], [["1", "2"]]) == expected


@pytest.mark.parametrize("cell", ["x | y", "x\ny"])
def test_a_cell_that_would_break_the_table(cell):
    with pytest.raises(ValueError, match="would break the table"):
        pages.markdown_table(["a"], [[cell]])


def test_a_page_is_printed_or_written(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    monkeypatch.setattr("sys.argv", ["script.py"])
    pages.print_or_write("Writes a page.", page, lambda: "text\n")
    assert capsys.readouterr().out == "text\n"
    assert not page.exists()
    monkeypatch.setattr("sys.argv", ["script.py", "--write"])
    pages.print_or_write("Writes a page.", page, lambda: "text\n")
    assert capsys.readouterr().out == ""
    assert page.read_text() == "text\n"
