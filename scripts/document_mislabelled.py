"""Writes the generated parts of docs/mislabelled.md: what of the paper's tables is not as it looks.

python scripts/document_mislabelled.py           # print
python scripts/document_mislabelled.py --write   # write docs/mislabelled.md

Numbers are published ones, or those of results/: reproduction, probe.json, direction-accuracy.json,
stopping-accuracy.json, published-gcn.json, first-dropout-accuracy.json and amazon-departures.json.
"""

import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from pages import fill_places, markdown_table, print_or_write

from adgn.data import PUBLISHED_COLUMNS
from adgn.experiments.tables import EXPERIMENTS
from adgn.report import Results, read_results
from adgn.report.numbers import NumberFormat, number_format
from adgn.selection.replicate import read_scores
from adgn.tasks.protocols import conditions_words, published_rows
from adgn.tasks.published import published_tables

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "mislabelled.md"
RESULTS = ROOT / "results"
# The experiment that measures a published table.
EXPERIMENTS_OF = {
    "graph_property_prediction": "property",
    "graph_benchmarks": "benchmarks",
    "heterophilic_benchmarks": "heterophily",
    "tree_neighbors_match": "trees",
}
SPLITS = 10  # of the heterophilic graphs
PYG = "PyG's layer"
AMAZON = {"photo": "Amazon Photo", "computers": "Amazon Computers"}
AMAZON_ROWS = {
    "adgn-gcn": "the paper's protocol",
    "adgn-gcn-regularised": "dropout, none to two first hops",
}


def read(name: str) -> dict[str, Any]:
    """A file of results."""
    found: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


def columns(found: Results) -> str:
    """Each published column of property prediction beside the constants of both targets."""
    (table,) = [one for one in found.tables if one.experiment.name == "property"]
    constants = {key: value.mean for key, value in table.experiment.constant.items()}
    published = published_tables()["graph_property_prediction"]["rows"]
    rows = []
    for title, target in PUBLISHED_COLUMNS.items():
        values = [f"{published[row][title]['mean']:.4f}" for row in ("GCN", "A-DGN ldw")]
        cell = table.cells["adgn-ldw", target]
        counts = cell.status == "done" and not table.is_outdated(cell) and cell.score is not None
        rows.append(
            [
                f"“{title}”",
                f"`{target}`",
                f"{constants[target]:.4f}",
                f"{constants[title.lower()]:.4f}",
                *values,
                f"{cell.score.mean:.4f}" if counts else "–",
            ]
        )
    gcn = published["GCN"]["SSSP"]["mean"]
    said = (
        f"GCN's published “SSSP”, {gcn:.4f}, is the score of a constant on the Laplacian target, "
        f"{constants['laplacian']:.4f}; on shortest paths a constant has {constants['sssp']:.4f}."
    )
    head = ["published column", "target", "constant on it", "constant on its name's target"]
    head += ["GCN, published", "A-DGN ldw, published", "A-DGN ldw, measured on the target"]
    return f"{said}\n\n{markdown_table(head, rows)}"


def behind(found: Results) -> str:
    """Whole cells of property prediction that are worse than published, run by run."""
    (table,) = [one for one in found.tables if one.experiment.name == "property"]
    experiment, form = table.experiment, number_format("")
    titles = {row.key: row.title for row in experiment.rows}
    compared, rows = 0, []
    for (key, column), cell in table.cells.items():
        known = cell.published
        if cell.status != "done" or table.is_outdated(cell) or known is None or cell.score is None:
            continue
        compared += 1
        worse = ((cell.score.mean or 0) - (known.mean or 0)) / (known.std or 1)
        if worse <= 1:
            continue
        runs = [
            f"{form.plain(run.scores['test'][experiment.metric.name])} "
            f"({form.plain(run.scores['val'][experiment.metric.name])}), "
            f"{run.best_epoch} of {run.epochs}"
            for run in cell.runs
        ]
        values = (form.plain(known.mean), form.plain(cell.score.mean), f"{worse:.1f}")
        rows.append([f"{titles[key]}, {column}", *values, "; ".join(runs)])
    said = (
        f"Of {compared} whole cells with a published value {len(rows)} "
        f"{'is' if len(rows) == 1 else 'are'} more than one published standard deviation worse."
    )
    head = ["cell", "published", "measured", "deviations worse"]
    head.append("runs: test (validation), epoch of the best of all")
    return f"{said}\n\n{markdown_table(head, rows)}" if rows else said


def directions(probe: dict[str, Any], runs: list[dict[str, Any]]) -> str:
    """What the direction decides, without training and with it."""
    rows, gains = [], []
    for task in ("chameleon", "squirrel"):
        one_hop = probe["measured"][task]["one_hop_gcn"]
        scores = {
            side: 100
            * mean(r["accuracy"] for r in runs if (r["task"], r["direction"]) == (task, side))
            for side in ("in", "out")
        }
        gains.append(f"{scores['out'] - scores['in']:.1f} points on {task.title()}")
        published = published_tables()["heterophilic_benchmarks"]["rows"]["A-DGN"][task.title()]
        rows.append(
            [
                f"`{task}`",
                *(f"{100 * one_hop[side]['mean']:.1f}" for side in ("in", "out")),
                *(f"{scores[side]:.1f}" for side in ("in", "out")),
                f"{published['mean']:.2f}",
            ]
        )
    head = ["data", "one hop, `in`", "one hop, `out`", "A-DGN, `in`", "A-DGN, `out`"]
    return (
        f"With the same settings A-DGN gains {' and '.join(gains)} by listening to outgoing "
        f"edges.\n\n{markdown_table([*head, 'A-DGN, published (`in`)'], rows)}\n"
        "Test accuracy in %, mean over the ten splits. One hop: a ridge regression on one hop of "
        "GCN's operator, nothing trained (`python benchmarks/probe.py`). A-DGN: "
        "`python benchmarks/direction_accuracy.py`."
    )


def published_form(runs: list[dict[str, Any]]) -> str:
    """GCN as its published row was trained, by both rules."""
    published = published_tables()["heterophilic_benchmarks"]["rows"]["GCN"]
    found = []
    for task in dict.fromkeys(run["task"] for run in runs):
        loss, accuracy = (
            100 * mean(run[rule] for run in runs if run["task"] == task)
            for rule in ("by_loss", "by_accuracy")
        )
        value = published[task.title()]["mean"]
        found.append(
            f"{loss:.1f} on {task.title()} by the loss (published {value:.2f}) and {accuracy:.1f} "
            "by the accuracy"
        )
    return (
        f"GCN as its published row was trained, in plain torch, has {'; '.join(found)} (`python "
        "benchmarks/published_gcn.py`): 2 layers of 16 units, dropout 0.5, and no linear maps "
        "before and after them."
    )


def beside_table(
    runs: list[dict[str, Any]], found: Results
) -> tuple[list[list[str]], list[tuple[float, str]]]:
    """Cells of the heterophilic table beside the same ones measured otherwise, and differences.

    A line has data, method, dropout, the table's accuracy, the other one and the published one.
    Left out are cells that were measured anew or are outdated, and those of which runs are missing.
    """
    (table,) = (one for one in found.tables if one.experiment.name == "heterophily")
    titles = {row.key: row.title for row in EXPERIMENTS["heterophily"].rows}
    published = published_tables()["heterophilic_benchmarks"]["rows"]
    rows, gaps = [], []
    for key, task in dict.fromkeys((run["row"], run["task"]) for run in runs):
        mine = [run for run in runs if (run["row"], run["task"]) == (key, task)]
        cell = table.cells[key, task]
        settings = cell.settings
        now = {run.split: read_scores(run.scores["test"])["accuracy"] for run in cell.runs}
        changed = any(
            run["settings"] != settings or run["in_table"] != round(now.get(run["split"], 0), 6)
            for run in mine
        )
        if len(mine) < SPLITS or changed or table.is_outdated(cell):
            continue
        values = [[100 * run[name] for run in mine] for name in ("in_table", "accuracy")]
        gaps.append((mean(values[0]) - mean(values[1]), f"{titles[key]} on {task.title()}"))
        rows.append(
            [
                task.title(),
                titles[key],
                str(settings["model.dropout"]),
                *(f"{mean(v):.1f} ± {stdev(v):.1f}" for v in values),
                f"{published[titles[key]][task.title()]['mean']:.2f}",
            ]
        )
    return rows, gaps


def stopping(runs: list[dict[str, Any]], gcn: list[dict[str, Any]], found: Results) -> str:
    """Cells of the heterophilic table, stopped by the validation accuracy and by the loss."""
    rows, gaps = beside_table(runs, found)
    if not gaps:
        return published_form(gcn)
    (least, where), (most, there) = min(gaps), max(gaps)
    head = ["data", "method", "dropout", "stopped by accuracy", "stopped by loss"]
    return (
        f"{published_form(gcn)}\n\nOf the table's cells here, stopping by the accuracy instead of "
        f"the loss changes the test accuracy by {least:+.1f} ({where}) to {most:+.1f} points "
        f"({there}), all else the same.\n\n{markdown_table([*head, 'published (by loss)'], rows)}\n"
        "Test accuracy in %, mean and standard deviation over the ten splits. The settings are "
        "those that the table's search chose by the validation accuracy; a search by the loss "
        "would choose others. By `python benchmarks/stopping_accuracy.py`."
    )


def first_dropout(runs: list[dict[str, Any]], found: Results) -> str:
    """Cells whose first dropout is of features, and the same with dropout of the first states."""
    rows, gaps = beside_table(runs, found)
    if not gaps:
        return "Not measured with the settings that the table has now."
    (least, where), (most, there) = min(gaps), max(gaps)
    head = ["data", "method", "dropout", "of the features", "of the first states", "published"]
    return (
        f"Dropping features instead of first states changes the test accuracy by {least:+.1f} "
        f"({where}) to {most:+.1f} points ({there}), all else the same.\n\n"
        f"{markdown_table(head, rows)}\n"
        "Test accuracy in %, mean and standard deviation over the ten splits. The settings are "
        "those that the table's search chose with dropout of the features. By `python "
        "benchmarks/first_dropout_accuracy.py`."
    )


def twins(probe: dict[str, Any]) -> str:
    """How many nodes of Chameleon leak."""
    for warning in probe["measured"]["chameleon"]["findings"]["warnings"]:
        if warning["kind"] == "twins":
            return f"On Chameleon `adgn probe` finds: {warning['text']}."
    return "On Chameleon `adgn probe` finds no such nodes."


def trees() -> str:
    """The published accuracies of the trees, plain and per trained unit."""
    table = published_tables()["tree_neighbors_match"]
    plain, normal = table["rows"], table["rows_normalised"]
    titles = [f"radius {radius}" for radius in table["radius"]]
    rows, best = [], {}
    for name, values in (("accuracy", plain), ("normalised", normal)):
        for row in ("GGNN", "A-DGN"):
            unit = 100 if name == "accuracy" else 1
            shown = [f"{unit * value:.{0 if unit == 100 else 2}f}" for value in values[row]]
            rows.append([f"{row}, {name}", *shown])
        pairs = zip(titles, values["GGNN"], values["A-DGN"], strict=True)
        best[name] = [title for title, other, ours in pairs if other > ours]
    units = [f"{100 * a / n:.0f}" for a, n in zip(plain["A-DGN"], normal["A-DGN"], strict=True)]
    rows.append(["A-DGN, units that these two imply", *units])
    later = ", ".join(best["normalised"])
    said = (
        f"By plain accuracy GGNN is ahead of A-DGN at {', '.join(best['accuracy'])}; by the "
        f"normalised one, which the table leads with, {f'at {later}' if later else 'nowhere'}."
    )
    return f"{said}\n\n{markdown_table(['published', *titles], rows)}"


def amazon(found: Results, runs: list[dict[str, Any]]) -> str:
    """A-DGN on the two data sets of Amazon: published, searched here, with departures."""
    (table,) = [one for one in found.tables if one.experiment.name == "benchmarks"]
    values = published_tables()["graph_benchmarks"]["rows"]["A-DGN (GCN)"]
    published = ["published", *(f"{values[title]['mean']:.1f}" for title in AMAZON.values())]
    searched = []
    for key, what in AMAZON_ROWS.items():
        told = [f"{what}, by the table's search"]
        for task in AMAZON:
            cell = table.cells.get((key, task))
            if cell is None or cell.score is None:
                told.append("–")
                continue
            count = f"{len(cell.runs)} of {cell.planned_runs} runs"
            count += ", outdated" * table.is_outdated(cell)
            told.append(f"{NumberFormat(1, 100).moments(cell.score)} ({count})")
        searched.append(told)
    accuracies: dict[str, dict[str, dict[int, float]]] = {}  # by change, data and split
    for run in runs:
        by_task = accuracies.setdefault(run["change"], {task: {} for task in AMAZON})
        by_task[run["task"]][run["split"]] = 100 * run["accuracy"]

    def shown(found: dict[int, float]) -> str:
        if len(found) < 2:
            return "–"
        values = found.values()
        return f"{mean(values):.1f} ± {stdev(values):.1f} ({len(found)} splits)"

    def gains(change: str) -> str:
        told = []
        for task, title in AMAZON.items():
            plain, changed = accuracies["none"][task], accuracies[change][task]
            gain = mean(changed[split] - plain[split] for split in changed.keys() & plain.keys())
            told.append(f"{gain:+.1f} points on {title}")
        return " and ".join(told)

    rows = [
        ["no change" if change == "none" else change, *map(shown, by_task.values())]
        for change, by_task in accuracies.items()
    ]
    return (
        f"PyG's own layer in place of this package's changes A-DGN by {gains(PYG)}; dropout 0.8 by "
        f"{gains('dropout 0.8')}; first states averaged with the neighbours' by "
        f"{gains('first states from neighbours')}, all else the same.\n\n"
        f"{markdown_table(['A-DGN (GCN)', *AMAZON.values()], [published, *searched, *rows])}\n"
        "Test accuracy in %, mean and standard deviation over splits. The rows below those by "
        "search: 5 layers of 64 units, ε = 1, γ = 0.1, learning rate 0.01, one initialisation per "
        "split, and one change at a time. PyG's layer stands in the place of this package's, in "
        "the same network and the same training. First states from neighbours: one hop of GCN's "
        "operator on the encoded features, of which a node keeps a small part. By "
        "`python benchmarks/amazon_departures.py`."
    )


def protocols() -> str:
    """For each published table and each source of its rows: what they share, where they differ."""
    parts = []
    for table, experiment in EXPERIMENTS_OF.items():
        groups = published_rows(table, list(published_tables()[table]["rows"]))
        sources: dict[str, list[dict[str, str]]] = {}
        remarks = []
        for names, protocol in groups:
            line = {"rows": ", ".join(names), **conditions_words(protocol.conditions)}
            sources.setdefault(protocol.source, []).append(line)
            if protocol.remarks:
                remarks.append(f"- {line['rows']}: {' '.join(protocol.remarks)}\n")
        parts.append(
            f"**{EXPERIMENTS[experiment].title}**: measured in {len(sources)} "
            f"place{'s' * (len(sources) > 1)}.\n"
        )
        for source, lines in sources.items():
            keys = list(lines[0])
            differ = [key for key in keys if len({line[key] for line in lines}) > 1]
            shared = [key for key in keys if key not in (*differ, "rows")]
            same = "; ".join(f"{key}: {lines[0][key]}" for key in shared)
            rows = "The rows below" if "rows" in differ else lines[0]["rows"]
            parts.append(f"{rows}: measured by {source}; {same}.\n")
            if differ:
                parts.append(markdown_table(differ, [[line[k] for k in differ] for line in lines]))
        parts += ["".join(remarks)] if remarks else []
    return "\n".join(parts)


def page(text: str) -> str:
    """The page with its generated parts as they must be now."""
    found, probe = read_results(RESULTS / "reproduction"), read("probe.json")
    parts = {
        "columns": columns(found),
        "behind": behind(found),
        "twins": twins(probe),
        "protocols": protocols(),
        "directions": directions(probe, read("direction-accuracy.json")["runs"]),
        "stopping": stopping(
            read("stopping-accuracy.json")["runs"], read("published-gcn.json")["runs"], found
        ),
        "first-dropout": first_dropout(read("first-dropout-accuracy.json")["runs"], found),
        "trees": trees(),
        "amazon": amazon(found, read("amazon-departures.json")["runs"]),
    }
    return fill_places(text, parts, PAGE)


if __name__ == "__main__":
    print_or_write(__doc__, PAGE, lambda: page(PAGE.read_text(encoding="utf-8")))
