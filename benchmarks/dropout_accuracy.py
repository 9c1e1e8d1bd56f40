"""What dropout does to A-DGN on Amazon Photo and Computers, whose published values had none.

    python benchmarks/dropout_accuracy.py [--only photo] [--out FILE]

A-DGN with GCN's operator, 5 layers of 64 units, ε = 1, γ = 0.1, learning rate 0.01, without dropout
as the paper's protocol has it and with dropout 0.8 on the first and last states; on the task's five
splits, one initialisation each, early stopping as the task has it. Results are kept after every
run, and a second call does what is missing.
"""

import argparse
import json
import time
from pathlib import Path

import torch

from adgn._util.environment import environment
from adgn._util.files import write_file
from adgn.training import resolve_config, shared_data, train

OUT = Path(__file__).resolve().parents[1] / "results" / "dropout-accuracy.json"
MODEL = {"phi": "gcn", "num_layers": 5, "hidden_channels": 64, "epsilon": 1.0, "gamma": 0.1}
DROPOUTS = (0.0, 0.8)


def run(task: str, dropout: float, split: int) -> dict[str, object]:
    """One training, and its accuracies."""
    settings = {
        "model": {**MODEL, "dropout": dropout},
        "optimizer": {"lr": 0.01},
        "task": {"split": split},
    }
    config = resolve_config(task, settings)
    started = time.process_time()
    result = train(config)
    return {
        "task": task,
        "dropout": dropout,
        "split": split,
        "accuracy": round(result.scores["test"]["accuracy"], 6),
        "validation": round(result.scores["val"]["accuracy"], 6),
        "epochs": result.epochs,
        "seconds": round(time.process_time() - started, 1),
        "commit": environment()["git_commit"],
    }


def main() -> None:
    """Runs what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="photo,computers")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    runs = json.loads(arguments.out.read_text())["runs"] if arguments.out.exists() else []
    done = {(one["task"], one["dropout"], one["split"]) for one in runs}
    for task in arguments.only.split(","):
        for split in range(arguments.splits):
            for dropout in DROPOUTS:
                if (task, dropout, split) in done:
                    continue
                with shared_data():
                    runs.append(run(task, dropout, split))
                print(runs[-1], flush=True)
                content = {"environment": environment(), "model": MODEL, "runs": runs}
                write_file(arguments.out, json.dumps(content, indent=1).encode() + b"\n")


if __name__ == "__main__":
    main()
