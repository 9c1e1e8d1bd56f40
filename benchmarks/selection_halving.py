"""What successive halving costs and finds, beside the full search, on Texas.

    python benchmarks/selection_halving.py record   # the full search: hours; it can be stopped
    python benchmarks/selection_halving.py replay   # halving on its learning curves: seconds
    python benchmarks/selection_halving.py real     # one halving in earnest, to be the same

The full search trains every configuration of a part of the paper's grid on three splits and keeps
the validation score of every epoch. A run that pauses at a rung and goes on later is the same run
bit for bit, so what halving would have seen, chosen and cost can be read off these curves; `real`
shows that it is so. Writes `results/halving.json`. The raw files of Texas are looked for where
`adgn data` keeps them (`ADGN_DATA`).
"""

import argparse
import json
import platform
import tempfile
import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch

from adgn._util.environment import available_cores
from adgn._util.files import write_file
from adgn.bench.run import measured_commit
from adgn.selection import Run, StudyFolder, grid_points, select
from adgn.selection.definition import params_key
from adgn.selection.halving import Entry, rungs_of, wanted_entries
from adgn.selection.spaces import nested
from adgn.selection.study import trial_entry
from adgn.training import DivergedError, resolve_config, shared_data, train

RESULTS = Path(__file__).parent.parent / "results" / "halving.json"
CURVES = Path("studies") / "halving-benchmark" / "curves"
TASK = "texas"
# The paper's grid up to 128 units and 16 layers, with two of its four rates of dropout.
SPACE: dict[str, list[Any]] = {
    "optimizer.lr": [0.1, 0.01, 0.0001],
    "optimizer.weight_decay": [0.01],
    "model.num_layers": [8, 16],
    "model.hidden_channels": [128],
    "model.act": ["tanh", "relu"],
    "model.dropout": [0.0, 0.4],
    "model.epsilon": [0.1, 0.01],
    "model.gamma": [0.1, 0.01],
}
SEEDS = (0, 1)
SPLITS = (0, 1, 2)


# Seed and first split of each replayed search; it is compared with the full search of its seed.
VARIANTS = tuple((seed, split) for seed in SEEDS for split in SPLITS)


def record(folder: Path) -> None:
    """Trains what is not there yet, a file per run with the scores of every epoch."""
    for run in (Run(seed, split) for seed in SEEDS for split in SPLITS):
        for params in grid_points(SPACE):
            curve_of(folder, params, run)


def curve_of(folder: Path, params: dict[str, Any], run: Run) -> dict[str, Any]:
    """The learning curve of a run, read or trained."""
    file = folder / f"{params_key(params, SPACE)}-{run.name}.json"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with shared_data():
            curve = learning_curve(params, run)
        write_file(file, json.dumps({"params": params, **curve}).encode())
        print(file.stem, curve["epochs"], curve["seconds"], flush=True)
    found: dict[str, Any] = json.loads(file.read_bytes())
    return found


def learning_curve(params: dict[str, Any], run: Run) -> dict[str, Any]:
    """The validation scores of a run by epoch, and its time."""
    config = resolve_config(TASK, nested(params), run.settings())
    began = time.process_time()  # other programs may use the cores too
    try:
        result = train(config, evaluate_test=False)
    except DivergedError as error:
        seconds = round(time.process_time() - began, 3)
        return {"diverged": error.epoch, "epochs": error.epoch, "seconds": seconds, "scores": []}
    return {
        "diverged": None,
        "epochs": result.epochs,
        "seconds": round(time.process_time() - began, 3),
        "scores": [line["val"]["accuracy"] for line in result.history],
    }


class Curves:
    """All learning curves, each read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.params = {params_key(params, SPACE) or "": params for params in grid_points(SPACE)}
        self.read: dict[tuple[str, Run], dict[str, Any]] = {}

    def of(self, key: str, run: Run) -> dict[str, Any]:
        """The curve of a run."""
        if (key, run) not in self.read:
            self.read[key, run] = curve_of(self.folder, self.params[key], run)
        return self.read[key, run]

    def best(self, key: str, runs: list[Run], epochs: int) -> float | None:
        """The mean over runs of the best score up to an epoch; `None` where one diverged."""
        curves = [self.of(key, run) for run in runs]
        if any(c["diverged"] is not None and c["diverged"] <= epochs for c in curves):
            return None
        return mean(max(curve["scores"][:epochs]) for curve in curves)


def replay(curves: Curves, seed: int, first: int) -> dict[str, Any]:
    """What halving would have seen and chosen, and what it would have cost."""
    order = [first, *(split for split in SPLITS if split != first)]
    runs = [Run(seed, split) for split in order]
    config = resolve_config(TASK)
    rungs = rungs_of(config.loop.max_epochs, config.stopping.patience, len(runs))
    keys = list(curves.params)
    scores: dict[Entry, float | None] = {}
    over = False
    while not over:
        wanted, over = wanted_entries(keys, scores, rungs, maximize=True)
        for entry in [Entry(key, number) for number, rung in enumerate(wanted) for key in rung]:
            rung = rungs[entry.rung]
            scores[entry] = curves.best(entry.key, runs[: rung.runs], rung.epochs)
    reached: dict[tuple[str, Run], int] = {}
    for entry in scores:
        for run in runs[: rungs[entry.rung].runs]:
            epochs = min(rungs[entry.rung].epochs, curves.of(entry.key, run)["epochs"])
            reached[entry.key, run] = max(reached.get((entry.key, run), 0), epochs)
    seconds = sum(
        epochs * curves.of(*place)["seconds"] / curves.of(*place)["epochs"]
        for place, epochs in reached.items()
    )
    last = [(-s, e.key) for e, s in scores.items() if e.rung == len(rungs) - 1 and s is not None]
    return {
        "seed": seed,
        "first_split": first,
        "rungs": [
            {"epochs": rung.epochs, "runs": rung.runs, "configurations": count}
            for rung, count in zip(rungs, Counter(e.rung for e in scores).values(), strict=True)
        ],
        "epochs": sum(reached.values()),
        "seconds": round(seconds, 1),
        "selected": min(last)[1],
        "scores": {f"{entry.key}-{entry.rung}": score for entry, score in scores.items()},
    }


def full_search(curves: Curves, seed: int) -> tuple[dict[str, Any], dict[str, float]]:
    """The full search with a seed, and the score of every configuration in it."""
    runs = [Run(seed, split) for split in SPLITS]
    all_curves = [curves.of(key, run) for key in curves.params for run in runs]
    most = resolve_config(TASK).loop.max_epochs
    scores = {key: curves.best(key, runs, most) for key in curves.params}
    known = {key: score for key, score in scores.items() if score is not None}
    best = max(known, key=known.__getitem__)  # of equals the first, as a study selects
    apart = [curves.best(best, [run], most) or 0.0 for run in runs]
    return {
        "seed": seed,
        "configurations": len(scores),
        "runs": len(runs),
        "epochs": sum(curve["epochs"] for curve in all_curves),
        "seconds": round(sum(curve["seconds"] for curve in all_curves), 1),
        "best": best,
        "score": known[best],
        "standard_error": stdev(apart) / len(apart) ** 0.5,
    }, known


def summary(curves: Curves) -> dict[str, Any]:
    """The full searches, and each replayed one beside the one of its seed."""
    full_searches = {seed: full_search(curves, seed) for seed in SEEDS}
    searches = []
    for variant in VARIANTS:
        full, known = full_searches[variant[0]]
        better = sorted(known.values(), reverse=True)
        found = replay(curves, *variant)
        del found["scores"]
        score = known[found["selected"]]
        searches.append(
            {
                **found,
                "epochs_ratio": round(full["epochs"] / found["epochs"], 2),
                "seconds_ratio": round(full["seconds"] / found["seconds"], 2),
                "score_in_full_search": score,
                "rank": better.index(score) + 1,
                # Scores are means of shares of 59 nodes: equal ones may differ in the last bit.
                "within_one_standard_error": full["score"] - score <= full["standard_error"] + 1e-9,
            }
        )
    return {"full": [full for full, _ in full_searches.values()], "halving": searches}


def really(curves: Curves) -> dict[str, Any]:
    """Runs the first variant in earnest; compares every score and what is selected."""
    seed, first = VARIANTS[0]
    expected = replay(curves, seed, first)
    order = [first, *(split for split in SPLITS if split != first)]
    options: dict[str, Any] = {"space": SPACE, "prune": "halving", "seeds": [seed], "splits": order}
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        options |= {"folder": folder, "threads": 1, "evaluate_test": False}
        result = select(TASK, **options, study="real")
        study, definition = StudyFolder("real", folder).open()
        entries = [(trial_entry(t, definition), t.value) for t in study.get_trials()]
    found = {f"{entry.key}-{entry.rung}": value for entry, value in entries if entry is not None}
    return {
        "trials": len(found),
        "trials_with_the_replayed_score": sum(
            expected["scores"].get(name, ...) == value for name, value in found.items()
        ),
        "same_trials": set(found) == set(expected["scores"]),
        "same_selection": params_key(result.settings, SPACE) == expected["selected"],
        "wall_seconds": round(time.perf_counter() - began, 1),
    }


def main() -> None:
    """Does one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["record", "replay", "real"])
    parser.add_argument("--curves", type=Path, default=CURVES)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.part == "record":
        record(arguments.curves)
        return
    curves = Curves(arguments.curves)
    about = {
        "command": f"python benchmarks/selection_halving.py {arguments.part}",
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "commit": measured_commit(),
        "machine": f"{platform.machine()}, {available_cores()} cores",
        "torch": torch.__version__,
    }
    measured = summary(curves) if arguments.part == "replay" else really(curves)
    known = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    known = {"task": TASK, "space": SPACE, **known, arguments.part: {**about, **measured}}
    write_file(arguments.out, (json.dumps(known, indent=1) + "\n").encode())
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
