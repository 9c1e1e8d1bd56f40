"""Tables in Markdown."""

from collections.abc import Sequence

from adgn.report.grid import Entry, Grid, Head, Line

_SPECIALS = "\\`*_[]|#"
# Not every renderer lets a backslash escape these.
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def escape_markdown(text: str) -> str:
    r"""Text that stays as it is in a table of Markdown, on one line.

    Example:
        >>> escape_markdown("a|b *c*")
        'a\\|b \\*c\\*'
    """
    escaped = "".join(_ENTITIES.get(c) or (f"\\{c}" if c in _SPECIALS else c) for c in text)
    return " ".join(escaped.split())


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells are Markdown already; the first column left, the others right."""
    lines = [
        f"| {' | '.join(head)} |",
        f"|:---|{'---:|' * (len(head) - 1)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def markdown_head(column: Head) -> str:
    """The heading of a column with its note."""
    note = f" ({escape_markdown(column.note)})" if column.note else ""
    return escape_markdown(column.title) + note


def markdown_grid(grid: Grid) -> str:
    """A table of a report; the best measured value of each column is bold."""
    head = [grid.corner, *map(markdown_head, grid.heads)]
    rows = [
        [_label(line), *(markdown_entry(entry) for entry in line.entries)]
        for block in grid.blocks
        for line in block
    ]
    caption = f"{escape_markdown(grid.caption)}. Bold: the best of its column."
    text = f"{caption}\n\n{markdown_table(head, rows)}"
    notes = [f"- <sup>{note.mark}</sup> {escape_markdown(note.whole)}" for note in grid.notes]
    return text + ("\n" + "\n".join(notes) + "\n" if notes else "")


def _label(line: Line) -> str:
    label = escape_markdown(line.label)
    if not line.main:
        return f"*{label}*"
    mark = f" <sup>{line.mark}</sup>" if line.mark else ""
    return (f"**{label}**" if line.role == "measured" else label) + mark


def markdown_entry(entry: Entry) -> str:
    """A number; bold where it is the best of its column."""
    text = escape_markdown(entry.text)
    return f"**{text}**" if entry.best else text
