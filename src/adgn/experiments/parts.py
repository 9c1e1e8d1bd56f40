"""What several tables are made of: scores, rows and columns."""

from collections.abc import Mapping

from adgn.data import NODE_DATASETS, TARGETS
from adgn.experiments.definition import Column, Metric, Row
from adgn.experiments.records import Published
from adgn.nn import model_spec
from adgn.tasks.published import published_tables

MISLABELLED = (
    "The published columns are mislabelled: the reference implementation read the label columns in "
    "another order than they were written. The published “SSSP” is the Laplacian target (one hop, "
    "linear), the published “Eccentricity” is single-source shortest paths, and true eccentricity "
    "was never trained. Columns have their true names here; each published number stands with the "
    "target that it was measured on."
)
BATCH_MEAN = (
    "The score is averaged as in the paper: over batches of 512 graphs, so that the last test "
    "batch of 256 counts double."
)
LOG_ERROR = Metric(name="log10_mse_paper", title="log10 of the mean squared error")
ACCURACY = Metric(name="accuracy", title="test accuracy", higher_is_better=True, unit="%")


def baselines(*models: str) -> tuple[Row, ...]:
    """Models with the options that they have by default."""
    return tuple(Row(key=name, title=model_spec(name).title, model=name) for name in models)


def adgn_row(key: str, title: str, **options: object) -> Row:
    """A-DGN with options of the model."""
    return Row(key=key, title=title, model="adgn", settings={"model": options})


def _property_column(target: str) -> Column:
    published = TARGETS[target].published_as
    note = f"published as “{published}”" if published else "never published"
    return Column(key=target, title=target, task=target, note=note)


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


PROPERTIES = tuple(map(_property_column, ("diameter", "laplacian", "sssp", "eccentricity")))
NODE_ADGN = (
    adgn_row("adgn-sum", "A-DGN", phi="sum"),
    adgn_row("adgn-gcn", "A-DGN (GCN)", phi="gcn"),
)
