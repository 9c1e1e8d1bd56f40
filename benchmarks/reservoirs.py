"""Measure reservoirs, networks that are not trained but for a readout in closed form.

    python benchmarks/reservoirs.py            measure, write results/reservoirs.json and the docs
    python benchmarks/reservoirs.py --table    only write the table of docs/reservoirs.md

Randomised A-DGN and GESN, one reservoir each with the task's seed. Node classification: the task's
splits, ten or (Cora, PubMed) five; of a small grid the configuration with the best mean validation
accuracy over all splits is taken. Property prediction: the task's one split, the configuration with
the best validation score. Measured rows are kept, and a run that was stopped goes on with those
that are missing. Seconds are those of one fit, states included, with one thread.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

from adgn._util.environment import available_cores, git_commit, load_average, processor, versions
from adgn._util.files import write_file
from adgn.training import TrainConfig, prepare, shared_data
from adgn.training.readout import FixedStates, RidgeReadout
from adgn.training.tasks import task_entry

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "results" / "reservoirs.json"
DOCS = REPOSITORY / "docs" / "reservoirs.md"
BEGIN, END = "<!-- generated: reservoirs -->", "<!-- end of reservoirs -->"

NODE_TASKS = {
    "chameleon": ("in", "out"),
    "squirrel": ("in", "out"),
    "texas": ("in", "out"),
    "cora": ("in",),
    "pubmed": ("in",),
}
PROPERTY_TASKS = ("diameter", "eccentricity", "sssp", "laplacian")
FIXED: dict[str, dict[str, Any]] = {
    "adgn": {"train_recurrent": False, "readout": "ridge", "phi": "sum", "gamma": 0.1},
    "gesn": {"readout": "ridge", "matrix": "ring", "input_scale": 1.0},
}
NODE_UNITS, PROPERTY_UNITS = 1000, 200
NODE_GRID: dict[str, list[dict[str, Any]]] = {
    "adgn": [{"epsilon": e, "num_layers": n} for e in (0.1, 1.0) for n in (2, 4)],
    "gesn": [{"radius": r, "num_layers": n} for r in (0.1, 5.0, 30.0, 100.0) for n in (2, 4)],
}
PROPERTY_GRID: dict[str, list[dict[str, Any]]] = {
    "adgn": [{"epsilon": e, "num_layers": 20} for e in (0.1, 0.5)],
    "gesn": [{"radius": r, "num_layers": 20} for r in (0.6, 0.9)],
}


def measure(settings: Mapping[str, Any], splits: int) -> dict[str, Any]:
    """The scores of a configuration on some splits of its task, whose states are computed once."""
    scores: dict[str, list[float]] = {"val": [], "test": []}
    network, states, constant, seconds = None, None, [], 0.0
    for split in range(splits):
        task = {**settings["task"], **({"split": split} if splits > 1 else {})}
        prepared = prepare(TrainConfig(**{**settings, "task": task}))
        objective, sources = prepared.trainer.objective, prepared.data.sources
        monitor = prepared.trainer.monitor
        started = time.perf_counter()
        if network is None or states is None:
            network = prepared.model.eval()
            states = FixedStates(network)
        solver = RidgeReadout(network, objective)
        for rows, batch in states.of(sources["train"]):
            solver.add(rows, batch)
        solver.choose(states.of(sources["val"]), monitor, objective.modes[monitor])
        if split == 0:
            seconds = time.perf_counter() - started
        for part in ("val", "test"):
            metrics = objective.metrics()
            with torch.no_grad():
                for batch in sources[part].batches(0):
                    metrics.update(states.outputs(batch), batch)
            scores[part].append(metrics.compute()[monitor])
        constant.append(prepared.data.constant[monitor])
    return {"metric": monitor, **scores, "constant": constant, "seconds": seconds}


def cases() -> dict[str, tuple[list[dict[str, Any]], int]]:
    """For each row of the table, the configurations to choose from and the number of splits."""
    found: dict[str, tuple[list[dict[str, Any]], int]] = {}
    for model, fixed in FIXED.items():
        for task, directions in NODE_TASKS.items():
            splits = task_entry(task).splits(TrainConfig(task).task) or 1
            for direction in directions:
                common = {**fixed, "name": model, "direction": direction}
                grid = [
                    {**common, "hidden_channels": NODE_UNITS, **point} for point in NODE_GRID[model]
                ]
                found[f"{task} {model} {direction}"] = (_settings(task, grid), splits)
    for model, fixed in FIXED.items():
        for task in PROPERTY_TASKS:
            common = {**fixed, "name": model, "hidden_channels": PROPERTY_UNITS}
            grid = [{**common, **point} for point in PROPERTY_GRID[model]]
            found[f"{task} {model} in"] = (_settings(task, grid), 1)
    return found


def _settings(task: str, grid: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"task": {"name": task}, "model": model} for model in grid]


def measure_all(path: Path) -> None:
    """Measures all rows that are not in the file yet, and writes it after each."""
    torch.set_num_threads(1)
    record: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"rows": {}}
    for name, (grid, splits) in cases().items():
        if name in record["rows"]:
            continue
        load = load_average()
        with shared_data():
            tried = [{"model": s["model"], **measure(s, splits)} for s in grid]
        sign = -1 if tried[0]["metric"].startswith("log10") else 1
        best = max(tried, key=lambda row: sign * statistics.mean(row["val"]))
        record["rows"][name] = {**best, "configurations": len(grid), "load_average": load}
        record |= {
            "date": datetime.now(timezone.utc).date().isoformat(),
            "commit": (git_commit() or ("unknown", False))[0][:7],
            "processor": processor(),
            "cores": available_cores(),
            "threads": 1,
            "versions": versions(),
        }
        write_file(path, (json.dumps(record, indent=1) + "\n").encode())
        print(name, statistics.mean(best["test"]), f"{best['seconds']:.1f} s", file=sys.stderr)


def table(record: Mapping[str, Any]) -> str:
    """The rows in Markdown, and before them what they say."""
    lines = [
        conclusion(record["rows"]),
        "",
        "| task | model | listens | chosen | test | constant | seconds |",
        "|---|---|---|---|---:|---:|---:|",
    ]
    for name, row in record["rows"].items():
        task, model, direction = name.split()
        percent = row["metric"] == "accuracy"
        unit, digits = (100, 1) if percent else (1, 3)
        mean = f"{unit * statistics.mean(row['test']):.{digits}f}"
        if len(row["test"]) > 1:
            mean += f" ± {unit * statistics.stdev(row['test']):.{digits}f}"
        constant = f"{unit * statistics.mean(row['constant']):.{digits}f}"
        grid = (PROPERTY_GRID if task in PROPERTY_TASKS else NODE_GRID)[model][0]
        chosen = ", ".join(f"{key}={row['model'][key]:g}" for key in grid)
        lines.append(
            f"| `{task}` | `{model}` | {direction} | {chosen} | {mean}{' %' if percent else ''} | "
            f"{constant} | {row['seconds']:.1f} |"
        )
    loads = [row["load_average"] for row in record["rows"].values()]
    lines += [
        "",
        f"Measured on {record['date']} at commit `{record['commit']}`: {record['processor']}, "
        f"{record['cores']} cores, one thread, other work on the machine (load average "
        f"{min(loads):.1f} to {max(loads):.1f}); by `python benchmarks/reservoirs.py`.",
    ]
    return "\n".join(lines)


def conclusion(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Which reservoir is the best of each task, and where it listens."""
    best: dict[str, tuple[float, str]] = {}
    for name, row in rows.items():
        task, model, direction = name.split()
        sign = 1 if row["metric"] == "accuracy" else -1
        found = (sign * statistics.mean(row["test"]), f"`{model}`, `{direction}`")
        best[task] = max(best.get(task, found), found)
    told: dict[str, list[str]] = {}
    for task, (_, way) in best.items():
        told.setdefault(way, []).append(task)
    beaten = sum(
        (statistics.mean(row["test"]) > statistics.mean(row["constant"]))
        == (row["metric"] == "accuracy")
        for row in rows.values()
    )
    said = "; ".join(f"{way} on {', '.join(tasks)}" for way, tasks in told.items())
    return f"Best: {said}. {beaten} of {len(rows)} rows are better than the constant."


def write_table(record: Mapping[str, Any]) -> None:
    """Puts the table into its page."""
    text = DOCS.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    write_file(DOCS, f"{before}{BEGIN}\n{table(record)}\n{END}{after}".encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="only write the table of the docs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where measurements are kept")
    arguments = parser.parse_args()
    if not arguments.table:
        measure_all(arguments.out)
    write_table(json.loads(arguments.out.read_text()))
