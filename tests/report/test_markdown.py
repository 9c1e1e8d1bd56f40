import re

import pytest
from markdown import markdown

from adgn.report.grid import grids
from adgn.report.markdown import escape_markdown, markdown_grid
from tests.report.sample import TABLES


@pytest.mark.parametrize("index", range(len(TABLES)))
def test_a_renderer_finds_the_same_texts_in_the_table(sample, index):
    for grid in grids(sample.tables[index]):
        html = markdown(markdown_grid(grid), extensions=["tables"])
        cells = [
            re.sub(r"</?(strong|em)>", "", cell).strip()
            for cell in re.findall(r"<td[^>]*>(.*?)</td>", html)
        ]
        lines = [line for block in grid.blocks for line in block]
        assert len(cells) == len(lines) * (1 + len(grid.heads))
        texts = [text for line in lines for text in (line.label, *(e.text for e in line.entries))]
        unescaped = [
            c.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") for c in cells
        ]
        assert unescaped == texts


def test_what_would_break_a_table_is_escaped():
    assert escape_markdown("a | b\nc_d") == "a \\| b c\\_d"
