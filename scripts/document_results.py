"""Writes docs/results.md, its figures and README's parts from results/reproduction and bench.json.

python scripts/document_results.py           # print the page
python scripts/document_results.py --write   # write the page, the figures and the README
"""

import argparse
import re
import sys
from pathlib import Path

from pages import fill_places

from adgn.bench import read as read_bench
from adgn.bench.records import WayRecord
from adgn.report import Results, TableResults, headline_table, markdown_report, read_results
from adgn.report.charts import depth_charts, dot_charts
from adgn.report.markdown import escape_markdown, markdown_table
from adgn.report.write import figure_svg

ROOT = Path(__file__).resolve().parent.parent
RESULTS, BENCH = ROOT / "results" / "reproduction", ROOT / "results" / "bench.json"
PAGE, README, IMAGES = ROOT / "docs" / "results.md", ROOT / "README.md", ROOT / "docs" / "images"
HEADLINE = "property"
AT_BEST = ("pyg-csr", "pyg-csr-sparse")
ABSENT = (
    f"{RESULTS.relative_to(ROOT)} is not there: run `adgn reproduce`, then "
    f"`adgn report DIR --collect {RESULTS.relative_to(ROOT)}`"
)

HEAD = """\
# Results

What this package measures with the paper's protocols, next to what the paper reports. Every number
comes from the files under `results/reproduction`, which hold the configuration, the settings and
all runs of each cell. This page is generated from them:

```text
{command}
adgn report {folder} --collect results/reproduction
python scripts/document_results.py --write
```

`adgn report results/reproduction --out report` makes the tables in other formats and a page with
learning curves and the configuration of every cell. See [Reports](reports.md).
"""


def results() -> Results | None:
    """The committed results, where there are any."""
    return read_results(RESULTS) if (RESULTS / "reproduction.json").exists() else None


def page(found: Results) -> str:
    """docs/results.md as it must be now."""
    names = [table.experiment.name for table in found.tables]
    command = f"adgn reproduce {' '.join(names)} --budget {found.budget}"
    parts = [HEAD.format(command=command, folder=f"reproduction/{found.budget}")]
    for table in found.tables:
        text = markdown_report(table, level=2)
        if _drawn(table):
            text += f"\n![{escape_markdown(_alternative(table))}](images/{_image(table)})\n"
        parts.append(text)
    parts.append(_origin(found))
    return "\n".join(parts)


def images(found: Results) -> dict[str, str]:
    """The figures by file name."""
    return {_image(table): figure_svg(table) for table in found.tables if _drawn(table)}


def readme(text: str, found: Results | None) -> str:
    """The README with its parts as they must be now; without results it must have none."""
    parts = {"speed": speed()}
    if found is not None:
        table = next(t for t in found.tables if t.experiment.name == HEADLINE)
        parts["headline"] = (
            f"{headline_table(found, HEADLINE)}\n"
            f"Made by `adgn reproduce {HEADLINE} --budget {found.budget}`; all tables: "
            "[Results](docs/results.md)."
        )
        parts["figure"] = (
            f"![{escape_markdown(_alternative(table))}](docs/images/{_image(table)})\n\n"
            f"Made by `adgn report reproduction/{found.budget}`."
        )
    marked = re.findall(r"<!-- results:(\w+) -->", text)
    missing = [name for name in marked if name not in parts]
    if missing:
        raise ValueError(f"{README} has a place for {', '.join(missing)}, but {ABSENT}")
    wanted = {name: parts[name] for name in marked}
    return fill_places(text, wanted, README, ("<!-- results:{} -->", "<!-- /results:{} -->"))


def speed() -> str:
    """How many times longer and larger PyG is than this package, by case."""
    rows = []
    for name, case in read_bench(BENCH).cases.items():
        ways = case.points[0].ways
        ours = ways.get("adgn", WayRecord())
        if len(case.points) > 1 or case.quick or not ours.seconds or "pyg" not in ways:
            continue
        documented, best = [ways["pyg"]], [ways[way] for way in AT_BEST if way in ways]
        rows.append(
            [
                name,
                f"{ours.seconds:.3g} s",
                _least([way.seconds for way in documented], ours.seconds),
                _least([way.seconds for way in best], ours.seconds),
                _least([way.peak_mb for way in documented], ours.peak_mb),
                _least([way.peak_mb for way in best], ours.peak_mb),
            ]
        )
    head = [
        *("case", "adgn", "PyG as documented: × time", "PyG at its best: × time"),
        *("PyG as documented: × memory", "PyG at its best: × memory"),
    ]
    return (
        f"{markdown_table(head, rows)}\n"
        "Made by `adgn bench`. At its best: the better of PyG's layer on a prebuilt CSR adjacency "
        "with dense or sparse features. Machine, versions and all measurements: "
        "[Performance](docs/performance.md)."
    )


def _least(values: list[float | None], ours: float | None) -> str:
    there = [value for value in values if value is not None]
    return f"{min(there) / ours:.1f}" if there and ours else "–"


def _drawn(table: TableResults) -> bool:
    lines = [series for chart in depth_charts(table) for series in chart.series]
    return bool(dot_charts(table)) or any(series.pieces for series in lines)


def _image(table: TableResults) -> str:
    return f"results-{table.experiment.name}.svg"


def _alternative(table: TableResults) -> str:
    metric = table.experiment.metric.title
    if table.experiment.kind == "depth":
        return f"{table.experiment.title}: {metric} against the number of layers, by method"
    return f"{table.experiment.title}: {metric}, measured and published, by method"


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
        lines.append(f"Measured {found.dates[0]} to {found.dates[-1]} with adgn {found.version}")
    if commits:
        lines.append(f"at commits {', '.join(commit[:12] for commit in commits)}")
    if platforms:
        lines.append(f"on {', '.join(escape_markdown(name) for name in platforms)}")
    return "\n".join(lines) + ("." if len(lines) > 1 else "") + "\n"


def main() -> None:
    """Parses the command line and prints or writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the page, figures and README")
    write = parser.parse_args().write
    found = results()
    if write:
        README.write_text(readme(README.read_text(encoding="utf-8"), found), encoding="utf-8")
    if found is None:
        print(ABSENT, file=sys.stderr)
    elif write:
        PAGE.write_text(page(found), encoding="utf-8")
        for name, content in images(found).items():
            IMAGES.joinpath(name).write_text(content, encoding="utf-8")
    else:
        print(page(found), end="")


if __name__ == "__main__":
    main()
