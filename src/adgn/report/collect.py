"""Collects the small files of a results directory, to be committed; never loses a measured cell."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from adgn.experiments.records import Cell, Outline, read_record, write_record
from adgn.experiments.tables import EXPERIMENTS
from adgn.report.results import ReportError, read_results
from adgn.report.write import write_output

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Collected:
    """What a collection did: the files that were written, and what to know about single cells."""

    files: tuple[Path, ...]
    notes: tuple[str, ...]


def collect(folder: Path, out: Path) -> Collected:
    """Merges what a report needs, without studies and runs, into a folder that can be committed.

    Cells that hold nothing are not copied. Another one replaces that of the copy where it holds at
    least as much: a whole one more than one with some of its runs, that more than one with settings
    alone. Of two whole ones with different definitions the newer one stays, of equal dates that of
    `folder`. Cells and experiments that `folder` does not have stay, and so do rows and columns
    that hold something or that the table still has. Whatever was copied first, experiments are in
    the order of `adgn reproduce --list`.

    Args:
        folder: A results directory.
        out: Where the copy goes.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     copied = collect(Path("results/reproduction"), Path(folder) / "copy")
        ...     len(read_results(Path(folder) / "copy").tables) >= 1, copied.files[-1].name
        (True, 'reproduction.json')
    """
    results = read_results(folder)  # nothing damaged is copied
    if out.resolve() == folder.resolve():
        raise ReportError(f"--collect={out} is DIR itself; give another folder")
    previous = read_results(out) if (out / "reproduction.json").exists() else None
    if previous is not None and previous.budget != results.budget:
        raise ReportError(
            f"--collect={out} has results of budget {previous.budget!r}, DIR={folder} those of "
            f"{results.budget!r}; give another folder"
        )
    files: list[Path] = []
    notes: list[str] = []
    names = [table.experiment.name for table in results.tables]
    before = () if previous is None else previous.tables
    known = {table.experiment.name: table.experiment for table in before}
    for name in names:
        # The definition first: at any moment it has the rows and columns of all cells.
        files.append(_merge_definition(folder / name, out / name, known.get(name)))
        for path in sorted((folder / name / "cells").glob("*.json")):
            target = out / name / "cells" / path.name
            if _is_to_replace(path, target, notes):
                files.append(write_output(target, path.read_bytes()))
    head = json.loads((folder / "reproduction.json").read_text(encoding="utf-8"))
    head["experiments"] = _union(names, known, EXPERIMENTS, str)
    text = json.dumps(head, indent=1, ensure_ascii=False) + "\n"
    files.append(write_output(out / "reproduction.json", text.encode()))
    return Collected(tuple(files), tuple(notes))


def _is_to_replace(source: Path, target: Path, notes: list[str]) -> bool:
    """Whether a cell takes the place of that in the copy; notes what is not a matter of course."""
    new = read_record(source, Cell, ReportError)
    holds = _content(new) > _content(None)
    if not target.exists():
        return holds
    old = read_record(target, Cell, ReportError)
    other_definition = new.fingerprint != old.fingerprint and _content(old) > _content(None)
    if other_definition and new.status == old.status == "done":
        replaces = (new.date or "") >= (old.date or "")
    else:
        replaces = holds and _content(new) >= _content(old)
    cell = f"{new.experiment} {new.row} {new.column}"
    states = f"{_state(new)} in DIR, {_state(old)} in the copy"
    if other_definition:
        notes.append(
            f"{cell}: measured with different definitions ({states}); "
            f"{'replaced' if replaces else 'the copy stays'}"
        )
    elif not replaces and _content(old) > _content(None):
        notes.append(f"{cell}: the copy stays, which holds more ({states})")
    return replaces


def _content(cell: Cell | None) -> tuple[bool, int, bool, bool]:
    """How much a cell holds; of two, the larger holds more."""
    if cell is None:
        return False, 0, False, False
    done, failed = cell.status == "done", cell.status == "failed"
    return done, len(cell.runs), cell.search is not None, failed


def _state(cell: Cell) -> str:
    date = "" if cell.date is None else f" of {cell.date}"
    return f"{cell.status}, {len(cell.runs)} of {cell.planned_runs} runs{date}"


def _merge_definition(source: Path, target: Path, old: Outline | None) -> Path:
    """Writes experiment.json: that of the source, and what cells of the copy need besides."""
    path, file = source / "experiment.json", target / "experiment.json"
    new = read_record(path, Outline, ReportError)
    merged = new if old is None else _merged_definition(new, old, target)
    if merged == new:
        return write_output(file, path.read_bytes())
    write_record(file, merged)
    return file


def _merged_definition(new: Outline, old: Outline, target: Path) -> Outline:
    cells = [read_record(path, Cell, ReportError) for path in (target / "cells").glob("*.json")]
    usual = EXPERIMENTS.get(new.name)
    usual_rows, usual_columns = (usual.rows, usual.columns) if usual else ((), ())
    # Those of the copy that hold something, or that the table still has.
    kept_rows = {row.key for row in usual_rows} | {cell.row for cell in cells}
    kept_columns = {column.key for column in usual_columns} | {cell.column for cell in cells}
    old_rows = [row for row in old.rows if row.key in kept_rows]
    old_columns = [column for column in old.columns if column.key in kept_columns]
    rows = _union(new.rows, old_rows, usual_rows, attrgetter("key"))
    columns = _union(new.columns, old_columns, usual_columns, attrgetter("key"))
    places = {(row.key, column.key) for row in rows for column in columns}
    planned = _union(new.cells, old.cells, (), attrgetter("row", "column"))
    constants = {column.dataset for column in columns}
    quoted = (one for one in new.quoted if one.title not in {row.title for row in rows})
    update = {
        "rows": rows,
        "columns": columns,
        "cells": tuple(cell for cell in planned if (cell.row, cell.column) in places),
        "constant": {k: v for k, v in {**old.constant, **new.constant}.items() if k in constants},
        "quoted": tuple(quoted),
    }
    return new.model_copy(update=update)


def _union(
    new: Iterable[_Item], old: Iterable[_Item], usual: Iterable[Any], key: Callable[[Any], Any]
) -> tuple[_Item, ...]:
    """Those of both, by their key, the new one where both have it; in the usual order if any."""
    order = list(map(key, (*usual, *new, *old)))
    found = {key(item): item for item in (*old, *new)}
    return tuple(sorted(found.values(), key=lambda item: order.index(key(item))))
