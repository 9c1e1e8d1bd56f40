import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adgn.report.grid import grids
from adgn.report.latex import escape_latex, latex_grid
from tests.report.sample import TABLES


def balanced(text):
    depth = 0
    for character in re.sub(r"\\[{}]", "", text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


@given(st.text())
def test_no_special_character_survives_bare(text):
    escaped = escape_latex(text)
    assert balanced(escaped)
    bare = re.sub(r"\\[{}$&#%_]|\\[a-z]+(\{\})?|\$[^$]*\$", "", escaped)
    assert not set(bare) & set("\\${}&#%_^~")


@pytest.mark.parametrize("index", range(len(TABLES)))
def test_a_table_has_as_many_cells_in_each_line_as_columns(sample, index):
    for grid in grids(sample.tables[index]):
        text = latex_grid(grid)
        assert balanced(text)
        for name in ("table", "tabular"):
            assert text.count(f"\\begin{{{name}}}") == text.count(f"\\end{{{name}}}") == 1
        lines = [line for line in text.splitlines() if line.endswith(r"\\")]
        assert len(lines) == 1 + sum(len(block) for block in grid.blocks)
        for line in lines:
            assert len(re.findall(r"(?<!\\)&", line)) == len(grid.heads)


def test_the_best_value_is_bold(sample):
    (grid,) = grids(sample.tables[0])
    (best,) = [b[0].entries[0] for b in grid.blocks if b[0].entries[0].best]
    assert rf"\textbf{{\boldmath {escape_latex(best.text)}}}" in latex_grid(grid)
