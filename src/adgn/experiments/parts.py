"""What several tables are made of: scores, rows and columns."""

from adgn.data import TARGETS
from adgn.experiments.definition import Column, Metric, Row
from adgn.nn import model_spec

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


PROPERTIES = tuple(map(_property_column, ("diameter", "laplacian", "sssp", "eccentricity")))
