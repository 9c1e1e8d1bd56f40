"""The cells of an experiment as CSV, one line per cell, with all digits."""

import csv
import io

from adgn.report.extra_scores import extra_scores, measured_extra, published_extra
from adgn.report.grid import difference_to_published
from adgn.report.results import Moments, TableResults
from adgn.training.tasks import TASKS

__all__ = ["csv_table"]

_COLUMNS = (
    *("experiment", "budget", "row", "row_title", "column", "column_title", "group", "layers"),
    *("metric", "unit", "status", "runs", "planned_runs", "mean", "std"),
    *("published_mean", "published_std", "difference", "constant_mean"),
)
_MORE_COLUMNS = (
    *("seconds_per_epoch_mean", "seconds_per_epoch_std", "parameters", "date", "fingerprint"),
    "error",
)
# What the values are in, in words: percentages are shown in the tables, shares are stored.
_UNITS = {"": "", "%": "share", "s": "seconds"}


def csv_table(table: TableResults) -> str:
    """All cells, waiting and failed ones included; numbers as in the JSON, not rounded."""
    experiment = table.experiment
    out = io.StringIO()
    # The same columns for all tables, so that they can be put together.
    titles = dict.fromkeys(s.title for entry in TASKS.values() for s in entry.extra_scores)
    forms = ("{}_mean", "{}_std", "published_{}_mean")
    names = [form.format(title) for title in titles for form in forms]
    writer = csv.DictWriter(out, (*_COLUMNS, *names, *_MORE_COLUMNS), lineterminator="\n")
    writer.writeheader()
    rows = {row.key: row for row in experiment.rows}
    columns = {column.key: column for column in experiment.columns}
    for (row, column), cell in table.cells.items():
        place = columns[column]
        constant = table.constant(place)
        more: dict[str, str] = {}
        for extra in extra_scores(table):
            more |= _moments(f"{extra.title}_", measured_extra(cell, extra))
            more[f"published_{extra.title}_mean"] = _mean(published_extra(cell, extra))
        writer.writerow(
            {
                "experiment": experiment.name,
                "budget": cell.budget,
                "row": row,
                "row_title": rows[row].title,
                "column": column,
                "column_title": place.title,
                "group": place.group,
                "layers": place.layers,
                "metric": experiment.metric.name,
                "unit": _UNITS[experiment.metric.unit],
                "status": cell.status,
                "runs": len(cell.runs),
                "planned_runs": cell.planned_runs,
                **_moments("", table.score(cell)),
                **_moments("published_", cell.published),
                "difference": _number(difference_to_published(table, cell)),
                "constant_mean": _mean(constant),
                **more,
                **_moments("seconds_per_epoch_", cell.seconds_per_epoch),
                "parameters": cell.parameters,
                "date": cell.date,
                "fingerprint": cell.fingerprint,
                "error": cell.error.message if cell.error else None,
            }
        )
    return out.getvalue()


def _moments(prefix: str, value: Moments | None) -> dict[str, str]:
    return {
        f"{prefix}mean": _mean(value),
        f"{prefix}std": _number(value.std if value else None),
    }


def _mean(value: Moments | None) -> str:
    return _number(value.mean if value else None)


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)
