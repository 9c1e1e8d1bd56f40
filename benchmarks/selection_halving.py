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
import sys
import time
from pathlib import Path
from typing import Any

import torch

from adgn.selection import Run, grid_points
from adgn.selection.definition import params_key
from adgn.selection.spaces import nested
from adgn.training import DivergedError, resolve_config, shared_data, train
from adgn.training.files import write_atomically

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


def record(folder: Path) -> None:
    """Trains what is not there yet, a file per run with the scores of every epoch."""
    folder.mkdir(parents=True, exist_ok=True)
    with shared_data():
        for run in (Run(seed, split) for seed in SEEDS for split in SPLITS):
            for params in grid_points(SPACE):
                file = folder / f"{params_key(params, SPACE)}-{run.name}.json"
                if not file.exists():
                    curve = learning_curve(params, run)
                    write_atomically(file, json.dumps({"params": params, **curve}).encode())
                    print(file.stem, curve["epochs"], curve["seconds"], flush=True)


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
        "losses": [line["val"]["loss"] for line in result.history],
    }


def main() -> None:
    """Does one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["record", "replay", "real"])
    parser.add_argument("--curves", type=Path, default=CURVES)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.part == "record":
        record(arguments.curves)
    else:
        sys.exit("not yet")


if __name__ == "__main__":
    main()
