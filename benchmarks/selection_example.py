"""The worked example of the documentation: A-DGN on Texas, compact space, two workers.

    python benchmarks/selection_example.py

Runs the command of the page in an empty folder and writes what it printed, its time and its scores
to `results/selection.json`. The raw files of Texas are looked for where `adgn data` keeps them
(`ADGN_DATA`).
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

import torch

from adgn._util.environment import available_cores
from adgn._util.files import write_file
from adgn.bench.run import measured_commit

RESULTS = Path(__file__).parent.parent / "results" / "selection.json"
ARGUMENTS = "select texas --model adgn --space compact --workers 2"


def main() -> None:
    """Runs the example and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    program = [sys.executable, "-c", "from adgn.cli import main; main()", *ARGUMENTS.split()]
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        printed = subprocess.run(program, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
        seconds = time.perf_counter() - begin
        study = Path(folder) / "studies" / "texas-adgn-compact"
        record = json.loads((study / "selection.json").read_text())
    example = {
        "what": f"adgn {ARGUMENTS}",
        "command": "python benchmarks/selection_example.py",
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "commit": measured_commit(),
        "machine": f"{platform.machine()}, {available_cores()} cores",
        "torch": torch.__version__,
        "seconds": round(seconds, 1),
        "runs_per_trial": len(record["runs"]),
        "trials": record["trials"],
        "settings": record["settings"],
        "validation": record["validation"],
        "test": record["test"],
        "published": record["published"],
        "output": [line.rstrip() for line in printed.stdout.splitlines()],
    }
    known = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    text = json.dumps({**known, "texas": example}, indent=2, ensure_ascii=False) + "\n"
    write_file(arguments.out, text.encode())
    print(printed.stdout, end="")
    print(f"{seconds:.0f} seconds; {arguments.out}")


if __name__ == "__main__":
    main()
