"""Prints the estimate of its memory and the peak, in bytes, of each configuration given as JSON."""

import ctypes
import gc
import json
import sys
from pathlib import Path

import torch

from adgn.training import resolve_config, train
from adgn.training.models import estimate_memory


def of_status(entry: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{entry}:"))


torch.set_num_threads(1)
folder, *configs = sys.argv[1:]
small = {"distance": 2, "train": 4, "val": 2, "test": 2}
train("graph-transfer", task=small, loop={"max_epochs": 1}, run_dir=f"{folder}/first")
for number, text in enumerate(configs):
    config = resolve_config(json.loads(text))
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what the run before has left
    before = of_status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from now on
    train(config, run_dir=f"{folder}/{number}")
    print(estimate_memory(config).total, of_status("VmHWM") - before, flush=True)
