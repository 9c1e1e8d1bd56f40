"""Writes docs/results.md, its figures, and the parts of README and home page that are measured.

python scripts/document_results.py           # print the page
python scripts/document_results.py --write   # write pages, figures and README
"""

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path

import transfer_part
from pages import fill_places

from adgn.bench.cases import CASES
from adgn.bench.records import WayRecord
from adgn.bench.records import read as read_bench
from adgn.bench.targets import BEST_OF
from adgn.bench.workloads import COMPILED
from adgn.experiments.tables import EXPERIMENTS
from adgn.report import (
    Results,
    TableResults,
    headline_table,
    markdown_report,
    read_results,
    reproduce_command,
)
from adgn.report.charts import charts
from adgn.report.markdown import escape_markdown, markdown_table
from adgn.report.verdict import verdict
from adgn.report.write import experiment_figure, figure_svg

ROOT = Path(__file__).resolve().parent.parent
RESULTS, BENCH = ROOT / "results" / "reproduction", ROOT / "results" / "bench.json"
TRANSFER = ROOT / "results" / "transfer.json"
PAGE, README, IMAGES = ROOT / "docs" / "results.md", ROOT / "README.md", ROOT / "docs" / "images"
HOME = ROOT / "docs" / "index.md"
HEADLINES = ("property", "benchmarks", "heterophily", "trees")
NOT_MEASURED = "Not measured yet"
ABSENT = (
    "results/reproduction is not there: run `adgn reproduce`, then "
    "`adgn report DIR --collect results/reproduction`"
)

HEAD = """\
# Results

What this package measures on the paper's tasks, next to what the paper reports: its data, splits,
training and scores, with settings from small searches that each table describes. Every number comes
from the files under `results/reproduction`, which hold the configuration, the settings and
all runs of each cell. This page is generated from them:

```text
{commands}
adgn report reproduction/{budget} --collect results/reproduction
python scripts/document_results.py --write
```

`adgn report results/reproduction --out report` makes the tables in other formats and a page with
learning curves and the configuration of every cell. See [Reports](reports.md).
"""
SHORT = """
Where a cell has fewer runs than planned, it says so; the same command without `--rounds` makes the
others.
"""
OLD = """
What is called outdated was measured with another definition (a search, a protocol, a default) than
the table has now, or with other settings than the table selects now that it takes them from; the
commands above measure it anew.
"""
EMPTY = f"""\
# Results

{NOT_MEASURED}. `adgn reproduce` measures the paper's tables (see [Reproduce the
paper](reproducing.md)); what it leaves becomes this page by

```text
adgn report reproduction/laptop --collect results/reproduction
python scripts/document_results.py --write
```
"""


def results() -> Results | None:
    """The committed results, where there are any."""
    return read_results(RESULTS) if (RESULTS / "reproduction.json").exists() else None


def page(found: Results | None) -> str:
    """docs/results.md as it must be now; without results it says that there are none."""
    if found is None:
        return EMPTY
    commands = "\n".join(reproduce_command(table) for table in found.tables)
    head = HEAD.format(commands=commands, budget=found.budget)
    cells = [cell for table in found.tables for cell in table.cells.values()]
    if any(0 < len(cell.runs) < cell.planned_runs for cell in cells):
        head += SHORT
    if any(table.outdated for table in found.tables):
        head += OLD
    parts = [head]
    for table in found.tables:
        text = markdown_report(table, level=2)
        if charts(table):
            text += f"\n![{escape_markdown(_alternative(table))}](images/{_image(table)})\n"
        parts.append(text)
    names = {table.experiment.name for table in found.tables}
    missing = [f"`{name}`" for name in EXPERIMENTS if name not in names]
    if missing:
        parts.append(f"## {NOT_MEASURED}\n\nThe experiments {', '.join(missing)}.\n")
    parts.append(_origin(found))
    return "\n".join(parts)


def images(found: Results | None) -> dict[str, str]:
    """The figures by file name."""
    tables = [] if found is None else found.tables
    crossing = transfer_part.read(TRANSFER)
    return ({} if crossing is None else {"transfer.svg": transfer_part.svg(crossing)}) | {
        _image(table): figure_svg(table, experiment_figure(table))
        for table in tables
        if charts(table)
    }


def front(text: str, found: Results | None, place: Path, docs: str) -> str:
    """README or home page with its parts as they must be now; what is not measured says so.

    Args:
        text: The page.
        found: The results.
        place: Where the page is.
        docs: The way from it to the documents.
    """
    parts = {"headline": headline(found), "transfer": transfer(), "speed": speed()}
    parts = {name: part.replace("](docs/", f"]({docs}") for name, part in parts.items()}
    marked = re.findall(r"<!-- results:(\w+) -->", text)
    for name in marked:
        if name not in parts:
            raise ValueError(f"{place} has a place for {name}; there are {', '.join(parts)}")
    return fill_places(text, parts, place, ("<!-- results:{} -->", "<!-- /results:{} -->"))


def headline(found: Results | None) -> str:
    """The paper's tables with the cells that have all their runs, and the commands for them."""
    if found is None:
        return f"{NOT_MEASURED}: `adgn reproduce` measures the paper's tables."
    parts, short = [], []
    for name in HEADLINES:
        table = _table(found, name)
        whole = None if table is None else table.complete()
        if whole is None or not whole.statuses["done"]:
            short.append(EXPERIMENTS[name].title)
            continue
        kept = front_rows(whole)
        rows = whole.experiment.rows
        outline = whole.experiment.model_copy(
            update={"rows": tuple(row for row in rows if row.key in kept)}
        )
        shown = replace(whole, experiment=outline)
        begun = {key for (key, _), cell in whole.cells.items() if cell.status == "done"}
        left = len(begun - kept)
        page = f"docs/results.md#{whole.experiment.title.lower().replace(' ', '-')}"
        more = f" {left} more rows, which the paper does not have: [Results]({page})."
        parts.append(
            f"**{whole.experiment.title}.** {escape_markdown(verdict(whole))}\n\n"
            f"{headline_table(shown)}\n"
            f"Made by `{reproduce_command(whole)}`.{more if left else ''}"
        )
    if short:
        parts.append(f"No cell has all its runs yet: {', '.join(short)}.")
    return "\n\n".join([*parts, "All tables, partial cells too: [Results](docs/results.md)."])


def front_rows(table: TableResults) -> set[str]:
    """The keys of the rows that the paper has, and of those that are the best of a column."""
    experiment = table.experiment
    kept = {key for (key, _), cell in table.cells.items() if cell.published is not None}
    best = max if experiment.metric.higher_is_better else min
    for column in experiment.columns:
        means = {row.key: table.compared(row, column) for row in experiment.rows}
        known = {key: mean for key, mean in means.items() if mean is not None}
        if known:
            kept.add(best(known, key=known.__getitem__))
    return kept


def transfer() -> str:
    """The figure of a number that crosses a line, and what it says."""
    found = transfer_part.read(TRANSFER)
    if found is None:
        return f"{NOT_MEASURED}: `python benchmarks/transfer.py` measures what it shows."
    alternative = f"{transfer_part.NAME}: error against distance, by method"
    return f"![{alternative}](docs/images/transfer.svg)\n\n{transfer_part.sentences(found)}"


def _table(found: Results | None, name: str) -> TableResults | None:
    tables = [] if found is None else found.tables
    return next((table for table in tables if table.experiment.name == name), None)


def speed() -> str:
    """How many times longer and larger PyG is than this package, by case."""
    rows, least = [], []
    measured = read_bench(BENCH).cases
    for name, case in ((name, measured[name]) for name in CASES if name in measured):
        ways = case.points[0].ways
        ours = ways.get("adgn", WayRecord())
        if len(case.points) > 1 or case.quick or not ours.seconds or "pyg" not in ways:
            continue
        documented, best = [ways["pyg"]], [ways[way] for way in BEST_OF if way in ways]
        compiled = [ways[way] for way in COMPILED if way in ways]
        times = [way.seconds for way in best if way.seconds is not None]
        if times:
            least.append(min(times) / ours.seconds)
        rows.append(
            [
                name,
                f"{ours.seconds:.3g} s",
                _least([way.seconds for way in documented], ours.seconds),
                _least([way.seconds for way in compiled], ours.seconds),
                _least([way.seconds for way in best], ours.seconds),
                _least([way.peak_mb for way in documented], ours.peak_mb),
                _least([way.peak_mb for way in best], ours.peak_mb),
            ]
        )
    head = [
        *("case", "adgn", "PyG as documented: × time", "PyG, torch.compile: × time"),
        *("PyG at its best: × time", "PyG as documented: × memory", "PyG at its best: × memory"),
    ]
    said = f"PyG at its best takes {min(least):.1f} to {max(least):.1f} times as long.\n\n"
    return (
        f"{said if least else ''}{markdown_table(head, rows)}\n"
        "Made by `adgn bench`. At its best: the best of what was measured of PyG's layer on a "
        "prebuilt CSR adjacency, with dense or sparse features, and compiled (a dash: not measured "
        "yet). Machine, versions and all measurements: [Performance](docs/performance.md)."
    )


def _least(values: list[float | None], ours: float | None) -> str:
    there = [value for value in values if value is not None]
    return f"{min(there) / ours:.1f}" if there and ours else "–"


def _image(table: TableResults) -> str:
    return f"results-{table.experiment.name}.svg"


def _alternative(table: TableResults) -> str:
    metric = table.experiment.metric.title
    if table.experiment.kind == "depth":
        return f"{table.experiment.title}: {metric} against the number of layers, by method"
    return f"{table.experiment.title}: {metric}, measured and published, by method"


def _short(commit: str) -> str:
    """A commit's first digits, and the mark of changes that were not committed."""
    return commit[:12] + ("+" if commit.endswith("+") else "")


def _origin(found: Results) -> str:
    cells = [cell for table in found.tables for cell in table.cells.values()]
    commits = sorted(
        {str(c.environment["git_commit"]) for c in cells if c.environment.get("git_commit")}
    )
    platforms = sorted(
        {str(c.environment["platform"]) for c in cells if c.environment.get("platform")}
    )
    lines = ["## Where the numbers come from\n"]
    if found.dates:
        first, last = found.dates[0], found.dates[-1]
        when = first if first == last else f"{first} to {last}"
        lines.append(f"Measured {when} with adgn {found.version}")
    if commits:
        lines.append(f"at commits {', '.join(map(_short, commits))}")
    if platforms:
        lines.append(f"on {', '.join(escape_markdown(name) for name in platforms)}")
    return "\n".join(lines) + ("." if len(lines) > 1 else "") + "\n"


def main() -> None:
    """Parses the command line and prints or writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the page, figures and README")
    write = parser.parse_args().write
    found = results()
    if found is None:
        print(ABSENT, file=sys.stderr)
    if not write:
        print(page(found), end="")
        return
    # All of it is made before anything is written: an error leaves the documents as they are.
    fronts = {
        place: front(place.read_text(encoding="utf-8"), found, place, docs)
        for place, docs in ((README, "docs/"), (HOME, ""))
    }
    text, drawn = page(found), images(found)
    for place, content in fronts.items():
        place.write_text(content, encoding="utf-8")
    PAGE.write_text(text, encoding="utf-8")
    for path in IMAGES.glob("results-*.svg"):
        if path.name not in drawn:
            path.unlink()
    for name, content in drawn.items():
        IMAGES.joinpath(name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
