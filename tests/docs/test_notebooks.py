"""The notebooks of the documentation run as they are, and their pages show what is in them."""

import pytest
import run_notebooks

NOTEBOOKS = run_notebooks.notebooks()


def kinds(notebook):
    """What each cell gives: the kinds of its outputs, and how many lines were printed."""
    cells = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [[(one["output_type"], len(one.get("text", []))) for one in cell] for cell in cells]


def notebook(*sources):
    cells = [{"cell_type": "code", "metadata": {"alt": "x"}, "source": [s]} for s in sources]
    return {"nbformat": 4, "cells": cells}


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["one-cell", "own-graph", "stability"]


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs_and_gives_what_is_shown(path, warm_workers):
    """Numbers may differ between machines. Otherwise run scripts/run_notebooks.py."""
    stored = run_notebooks.read(path)
    assert kinds(run_notebooks.run(stored, path.name)) == kinds(stored)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_page_is_the_notebook(path):
    """Otherwise run `python scripts/run_notebooks.py --pages`."""
    text, figures = run_notebooks.page(path, run_notebooks.read(path))
    assert path.with_suffix(".md").read_text(encoding="utf-8") == text
    there = {one.name: one.read_bytes() for one in run_notebooks.IMAGES.glob(f"{path.stem}-*.png")}
    assert there == figures


def test_outputs_are_what_jupyter_would_show():
    first = "import matplotlib.pyplot as plt\nx = 1\nprint('said')\nx + 1"
    found = run_notebooks.run(notebook(first, "x + 2;", "figure = plt.figure()", "x = 5"), "some")
    said, value = found["cells"][0]["outputs"]
    assert (said["text"], value["data"]) == (["said\n"], {"text/plain": ["2"]})
    assert value["execution_count"] == 1
    assert found["cells"][1]["outputs"] == []
    (drawn,) = found["cells"][2]["outputs"]
    assert drawn["output_type"] == "display_data"
    assert found["cells"][3]["outputs"] == []


def test_a_cell_that_fails_is_named():
    with pytest.raises(ZeroDivisionError) as error:
        run_notebooks.run(notebook("1", "1 / 0"), "some.ipynb")
    files = [entry.frame.code.raw.co_filename for entry in error.traceback]
    assert files[-1] == "some.ipynb, cell 2"


def test_another_format_is_refused(tmp_path):
    (tmp_path / "old.ipynb").write_text('{"nbformat": 3}')
    with pytest.raises(ValueError, match="nbformat=3; save it as version 4"):
        run_notebooks.read(tmp_path / "old.ipynb")
