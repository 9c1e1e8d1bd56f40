"""Rows and columns that several tables have."""

from collections.abc import Mapping

from adgn.data import NODE_DATASETS
from adgn.experiments.definition import Column, Metric, Row
from adgn.experiments.records import Published
from adgn.nn import model_spec
from adgn.tasks.published import published_tables

ACCURACY = Metric(name="accuracy", title="test accuracy", higher_is_better=True, unit="%")


def baselines(*models: str) -> tuple[Row, ...]:
    """A row for each model, as it is."""
    return tuple(Row(key=name, title=model_spec(name).title, model=name) for name in models)


def adgn_row(key: str, title: str, **options: object) -> Row:
    """A variant of A-DGN."""
    return Row(key=key, title=title, model="adgn", settings={"model": options})


def node_columns(*names: str, group: str | None = None) -> tuple[Column, ...]:
    """A column for each node data set."""
    return tuple(
        Column(key=name, title=NODE_DATASETS[name].title, task=name, group=group) for name in names
    )


def quoted_rows(
    table: str, columns: tuple[Column, ...], rows: tuple[Row, ...]
) -> dict[str, dict[str, Published]]:
    """The rows of a published table in percent that an experiment does not run."""

    def quoted(title: str, column: str, cell: Mapping[str, float]) -> Published:
        mean, std = (cell[key] / 100 if key in cell else None for key in ("mean", "std"))
        return Published(mean=mean, std=std, row=title, column=column)

    run = {row.title for row in rows}
    return {
        title: {column.key: quoted(title, column.title, cells[column.title]) for column in columns}
        for title, cells in published_tables()[table]["rows"].items()
        if title not in run
    }


NODE_ADGN = (
    adgn_row("adgn-sum", "A-DGN", phi="sum"),
    adgn_row("adgn-gcn", "A-DGN (GCN)", phi="gcn"),
)
