"""Times the cases and prints a table: `python -m benchmarks.compare --data FOLDER [case ...]`."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch

from adgn.graph import backend
from benchmarks.cases import OURS, node_steps, property_epochs
from benchmarks.data import many_graphs, node_task, web_task
from benchmarks.timing import Step, interleaved, peak_megabytes

PHYSICS = "Coauthor/Physics/raw/ms_academic_phy.npz"
COMPUTERS = "Amazon/Computers/raw/amazon_electronics_computers.npz"
TEXAS = "WebKB/texas/raw"


def cases(folder: Path, only: str | None) -> dict[str, Callable[[], dict[str, Step]]]:
    """What each case runs."""
    return {
        "property": lambda: property_epochs(many_graphs(), only=only),
        "physics": lambda: node_steps(node_task(folder / PHYSICS), 10, 64, "gcn", only),
        "computers": lambda: node_steps(node_task(folder / COMPUTERS), 30, 64, "gcn", only),
        "texas": lambda: repeated(node_steps(web_task(folder / TEXAS), 10, 64, "gcn", only), 20),
    }


def repeated(steps: dict[str, Step], times: int) -> dict[str, Step]:
    """Each step so many times in a row: one alone would be too short to time."""
    return {name: lambda step=step: [step() for _ in range(times)] for name, step in steps.items()}


def main() -> None:
    """Prints seconds and ratios of each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the raw data sets")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--cpu", action="store_true", help="processor instead of wall seconds")
    parser.add_argument("--only", help="run one way alone, to see its peak memory")
    parser.add_argument("case", nargs="*")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    clock = time.process_time if arguments.cpu else time.perf_counter
    print(backend(), "torch", torch.__version__)
    known = cases(arguments.data, arguments.only)
    for name in arguments.case or known:
        torch.manual_seed(0)
        seconds = interleaved(known[name](), arguments.repeats, clock=clock)
        print(f"{name}:")
        for way, taken in seconds.items():
            print(f"  {way:20s} {taken:9.4f} s  {taken / seconds.get(OURS, taken):6.2f}x")
    print(f"peak memory of this process: {peak_megabytes():.0f} MB")


if __name__ == "__main__":
    main()
