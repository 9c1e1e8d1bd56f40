"""Rows that several tables of the paper share."""

from collections.abc import Mapping

from adgn.experiments.definition import Column, PublishedCell, Row
from adgn.nn import model_spec
from adgn.tasks.published import published_tables

__all__ = ["adgn_row", "baseline_rows", "quoted_rows"]


def baseline_rows(*models: str) -> tuple[Row, ...]:
    """A row per model, by its usual title."""
    return tuple(Row(name, model_spec(name).title, name) for name in models)


def adgn_row(key: str, title: str, **options: object) -> Row:
    """A row of A-DGN with some of its options."""
    return Row(key, title, "adgn", {"model": options})


def quoted_rows(
    table: str, columns: tuple[Column, ...], run: tuple[str, ...], titles: Mapping[str, str]
) -> dict[str, dict[str, PublishedCell]]:
    """Rows of a published table in percent that an experiment does not run.

    Args:
        table: The table's name.
        columns: The experiment's columns.
        run: Titles of rows that are run.
        titles: For each column's key what the table calls it.
    """
    quoted: dict[str, dict[str, PublishedCell]] = {}
    for row, cells in published_tables()[table]["rows"].items():
        if row in run:
            continue
        quoted[row] = {
            column.key: PublishedCell(
                cells[titles[column.key]]["mean"] / 100,
                cells[titles[column.key]]["std"] / 100,
                row,
                titles[column.key],
            )
            for column in columns
        }
    return quoted
