"""The cells of an experiment as CSV, one line per cell, with all digits."""

import csv
import io
from typing import Any

from adgn.experiments.records import Moments
from adgn.report.extra_scores import measured_extra, published_extra
from adgn.report.grid import difference_to_published
from adgn.report.results import TableResults
from adgn.training.tasks import TASKS

# What the values are in, in words: percentages are shown in the tables, shares are stored.
_UNITS = {"": "", "%": "share", "s": "seconds"}


def csv_table(table: TableResults) -> str:
    """All cells, waiting and failed ones included; numbers as in the JSON, not rounded."""
    experiment = table.experiment
    titles = {row.key: row.title for row in experiment.rows}
    columns = {column.key: column for column in experiment.columns}
    # The same columns for all tables, so that they can be put together.
    extras = [score for task in TASKS.values() for score in task.extra_scores]
    lines: list[dict[str, Any]] = []
    for (row, key), cell in table.cells.items():
        column = columns[key]
        constant, published = table.constant(column), cell.published
        more: dict[str, float | None] = {}
        for score in extras:
            paper = published_extra(cell, score)
            more |= _moments(f"{score.title}_", measured_extra(cell, score))
            more[f"published_{score.title}_mean"] = paper.mean if paper else None
        lines.append(
            {
                "experiment": experiment.name,
                "budget": cell.budget,
                "row": row,
                "row_title": titles[row],
                "column": key,
                "column_title": column.title,
                "group": column.group,
                "layers": column.layers,
                "metric": experiment.metric.name,
                "unit": _UNITS[experiment.metric.unit],
                "status": cell.status,
                "runs": len(cell.runs),
                "planned_runs": cell.planned_runs,
                **_moments("", table.score(cell)),
                **_moments("published_", cell.published),
                "difference": difference_to_published(table, cell),
                "published_differs": " ".join(published.differences) if published else None,
                "constant_mean": constant.mean if constant else None,
                **more,
                **_moments("seconds_per_epoch_", cell.seconds_per_epoch),
                "parameters": cell.parameters,
                "date": cell.date,
                "fingerprint": cell.fingerprint,
                "outdated": table.is_outdated(cell),
                "error": cell.error.message if cell.error else None,
            }
        )
    out = io.StringIO()
    writer = csv.DictWriter(out, lines[0] if lines else (), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def _moments(prefix: str, value: Moments | None) -> dict[str, float | None]:
    mean, std = (value.mean, value.std) if value else (None, None)
    return {f"{prefix}mean": mean, f"{prefix}std": std}
