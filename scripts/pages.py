"""What the scripts that write pages of the documentation have in common."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

GENERATED = ("<!-- generated: {} -->", "<!-- end of {} -->")


def fill_places(
    text: str, parts: Mapping[str, str], page: Path, marks: tuple[str, str] = GENERATED
) -> str:
    """The text with every part between its two marks, in place of what was there.

    Args:
        text: The page.
        parts: The parts by the name of their place.
        page: Where the text is from, for the error about a missing place.
        marks: The beginning and the end of a place, `{}` in place of its name.
    """
    for name, part in parts.items():
        begin, end = (mark.format(name) for mark in marks)
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{page} has no place {begin} … {end}")
        text = f"{before}{begin}\n{part.strip()}\n{end}{after}"
    return text


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    for cell in (cell for line in lines for cell in line):
        if "|" in cell or "\n" in cell:
            raise ValueError(f"the table cell {cell!r} would break the table")
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def print_or_write(about: str, page: Path, text: Callable[[], str]) -> None:
    """Parses the command line, then prints the text or, with --write, makes it the page."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write docs/{page.name}")
    write = parser.parse_args().write
    if write:
        page.write_text(text(), encoding="utf-8")
    else:
        print(text(), end="")
