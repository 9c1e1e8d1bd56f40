"""The worked example of the documentation: A-DGN on Texas, compact space, two workers.

    python benchmarks/selection_example.py

The raw files of Texas are looked for where `adgn data` keeps them (`ADGN_DATA`). Writes the time
and the scores to `results/selection.json`.
"""

import argparse
import json
import platform
import subprocess
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

import torch

from adgn.selection import select
from adgn.selection.executors.base import available_cores
from adgn.training.files import write_atomically

RESULTS = Path(__file__).parent.parent / "results" / "selection.json"


def main() -> None:
    """Runs the example and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        result = select("texas", model="adgn", space="compact", workers=2, folder=folder)
        seconds = time.perf_counter() - begin
    record = result.record
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    example = {
        "what": "adgn select texas --model adgn --space compact --workers 2",
        "command": "python benchmarks/selection_example.py",
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "commit": commit,
        "machine": f"{platform.machine()}, {available_cores()} cores",
        "torch": torch.__version__,
        "minutes": round(seconds / 60, 1),
        "trials": record["trials"],
        "settings": record["settings"],
        "validation": record["validation"],
        "test": record["test"],
        "published": record["published"],
    }
    known = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    text = json.dumps({**known, "texas": example}, indent=2) + "\n"
    write_atomically(arguments.out, text.encode())
    accuracy = result.test["accuracy"]
    print(f"{seconds / 60:.1f} minutes, test accuracy {accuracy.mean:.4f} ± {accuracy.std:.4f}")


if __name__ == "__main__":
    main()
