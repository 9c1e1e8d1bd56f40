"""Measure the time and peak memory of preparing and loading every data set.

    python benchmarks/data_preparation.py --raw FOLDER     measure, write results/data.json
    python benchmarks/data_preparation.py --table          only write the table of docs/data.md

FOLDER is a data root that holds the raw files of the node benchmarks; it is not written to. Every
measurement runs in a process of its own, in a fresh data root.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from adgn._util.environment import processor
from adgn._util.files import write_file
from adgn.bench.run import measured_commit

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "results" / "data.json"
DOCS = REPOSITORY / "docs" / "data.md"
BEGIN = "<!-- measured: python benchmarks/data_preparation.py -->"
END = "<!-- end of measured -->"

# What loading means for the data sets that are not one call of adgn.data.load.
LOAD = {
    "graph-property": [
        "adgn.data.GraphPropertyDataset(root, split) for split in ('train', 'val', 'test')"
    ],
    "tree-neighbors-match": [
        "adgn.data.TreeNeighborsMatch(8, split) for split in ('train', 'test')"
    ],
    "graph-transfer": [
        "adgn.data.GraphTransfer('crossed_ring', 50, split) for split in ('train',)"
    ],
}
LABELS = {
    "graph-property": "`graph-property`, all splits",
    "tree-neighbors-match": "`tree-neighbors-match`, radius 8, both splits",
    "graph-transfer": "`graph-transfer`, crossed ring, distance 50",
}


def measure_here(name: str, step: str, root: str) -> dict[str, float]:
    """Run one step in this process: "prepare", "load" or, as the baseline, "nothing"."""
    import torch_geometric.datasets  # noqa: F401, part of the baseline

    import adgn.data
    from adgn.bench.timing import peak_megabytes

    before = peak_megabytes()
    start = time.perf_counter()
    if step == "prepare":
        adgn.data.prepare(name, root)
    elif step == "load":
        if name in LOAD:
            kept = eval(f"[{LOAD[name][0]}]", {"adgn": adgn, "root": root})  # our own table above
        else:
            kept = adgn.data.load(name, root)
        del kept
    return {
        "seconds": time.perf_counter() - start,
        "peak_mb": peak_megabytes(),
        "imports_mb": before,
    }


def measure(name: str, step: str, root: Path) -> dict[str, float]:
    """Run one step in a new process."""
    command = [sys.executable, "-W", "ignore", __file__, "--measure", name, step, str(root)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return result


def fresh_root(raw: Path, folder: Path) -> Path:
    """A data root whose raw files are links."""
    for source in raw.rglob("raw"):
        link = folder / source.relative_to(raw)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(source, target_is_directory=True)
    return folder


def measure_all(raw: Path, repeats: int) -> dict[str, Any]:
    """All data sets but those whose file users supply.

    Of the repeats the fastest counts, for memory the largest.
    """
    from adgn.data import CATALOGUE, NODE_DATASETS

    datasets = {}
    for name, info in CATALOGUE.items():
        if name in NODE_DATASETS and NODE_DATASETS[name].file:
            continue
        steps: dict[str, list[dict[str, float]]] = {"prepare": [], "load": []}
        size = 0.0
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as folder:
                root = fresh_root(raw.resolve(), Path(folder))
                if info.on_disk:
                    steps["prepare"].append(measure(name, "prepare", root))
                steps["load"].append(measure(name, "load", root))
                size = sum(f.stat().st_size for f in root.glob("adgn/*.safetensors")) / 1e6
        datasets[name] = {
            step: {
                "seconds": min(run["seconds"] for run in runs),
                "peak_mb": max(run["peak_mb"] for run in runs),
            }
            for step, runs in steps.items()
            if runs
        }
        datasets[name]["file_mb"] = size
        print(name, json.dumps(datasets[name]), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        imports = measure("texas", "nothing", Path(folder))["imports_mb"]
    return {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": measured_commit(),
        "machine": f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "versions": {
            package: version(package)
            for package in ("torch", "torch_geometric", "numpy", "networkx", "safetensors")
        },
        "repeats": repeats,
        "imports_mb": imports,
        "datasets": datasets,
    }


def table(results: dict[str, Any]) -> str:
    """The Markdown table of the docs, and before it what it says."""
    slowest = {
        step: max(
            (entry[step]["seconds"], name)
            for name, entry in results["datasets"].items()
            if entry.get(step)
        )
        for step in ("prepare", "load")
    }
    lines = [
        " ".join(
            f"{words} takes at most {slowest[step][0]:.1f} s (`{slowest[step][1]}`)."
            for step, words in (("prepare", "Preparation"), ("load", "Loading"))
        ),
        "",
        "| data set | prepare, s | peak, MB | load, s | peak, MB | file, MB |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, entry in results["datasets"].items():
        cells = [LABELS.get(name, f"`{name}`")]
        for step in ("prepare", "load"):
            run = entry.get(step)
            cells += [f"{run['seconds']:.2f}", f"{run['peak_mb']:.0f}"] if run else ["–", "–"]
        cells.append(f"{entry['file_mb']:.1f}" if entry["file_mb"] else "–")
        lines.append(f"| {' | '.join(cells)} |")
    versions = ", ".join(f"{package} {v}" for package, v in results["versions"].items())
    lines += [
        "",
        f"Measured on {results['date']} at commit `{results['commit']}`: {results['machine']}; "
        f"{versions}. Each step in a process of its own; the fastest of {results['repeats']} runs "
        f"and the largest peak of resident memory, of which {results['imports_mb']:.0f} MB are "
        "Python with torch and PyG imported. Downloads are not part of it.",
    ]
    return "\n".join(lines)


def write_table(results: dict[str, Any]) -> None:
    """Put the table between the two marks of the docs page."""
    text = DOCS.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    DOCS.write_text(f"{before}{BEGIN}\n{table(results)}\n{END}{after}")


def main() -> None:
    """Parse the arguments and do what they ask."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--raw", type=Path, help="a data root with the raw files")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="only write the table of the docs")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure_here(*arguments.measure)))
        return
    if not arguments.table:
        if arguments.raw is None:
            parser.error("give --raw FOLDER, or --table")
        measured = measure_all(arguments.raw, arguments.repeats)
        write_file(RESULTS, json.dumps(measured, indent=1).encode() + b"\n")
    write_table(json.loads(RESULTS.read_text()))


if __name__ == "__main__":
    main()
