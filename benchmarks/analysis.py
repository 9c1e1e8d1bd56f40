"""What the sensitivity of one node costs on Coauthor Physics, a 20-layer A-DGN with 64 units.

    python benchmarks/analysis.py --root DATA_ROOT

`DATA_ROOT` is a folder with `Coauthor/Physics/raw/ms_academic_phy.npz` as PyG stores it. Writes
`results/analysis.json`: seconds, peak memory of the process, and the sensitivity by distance.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import time
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import torch

from adgn.analysis import sensitivity
from adgn.nn import ADGN

RESULTS = Path(__file__).parent.parent / "results" / "analysis.json"


def load_physics(root: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Binary features as CSR, `[N, F]`, and the undirected edges, `[2, E]`."""
    path = root / "Coauthor" / "Physics" / "raw" / "ms_academic_phy.npz"
    if not path.is_file():
        raise SystemExit(f"{path} does not exist; pass the folder that holds it with --root")
    with np.load(path, allow_pickle=False) as raw:
        shape = tuple(int(size) for size in raw["attr_shape"])
        features = torch.sparse_csr_tensor(
            torch.as_tensor(raw["attr_indptr"]).long(),
            torch.as_tensor(raw["attr_indices"]).long(),
            torch.ones(len(raw["attr_indices"])),
            shape,
            check_invariants=True,
        )
        pointer = torch.as_tensor(raw["adj_indptr"]).long()
        target = torch.as_tensor(raw["adj_indices"]).long()
    source = torch.arange(shape[0]).repeat_interleave(pointer.diff())
    edges = torch.cat([torch.stack([source, target]), torch.stack([target, source])], dim=1)
    edges = edges[:, edges[0] != edges[1]]
    return features, torch.unique(edges, dim=1)


def main() -> None:
    """Measures and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--node", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    x, edge_index = load_physics(arguments.root)
    torch.manual_seed(0)
    model = ADGN(x.size(1), 64, 5, num_layers=20, phi="gcn")
    measured = {}
    for name, probes in (("exact", None), ("16 probes", 16)):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        result = sensitivity(model, x, edge_index, arguments.node, probes=probes)
        seconds = time.perf_counter() - begin
        profile = result.by_distance()
        measured[name] = {
            "seconds": round(seconds, 2),
            "cpu_seconds": round(time.process_time() - begin_cpu, 2),
            "mean_by_distance": [float(f"{value:.4g}") for value in profile.mean.tolist()],
            "nodes_by_distance": profile.pairs.tolist(),
        }
        print(f"{name}: {seconds:.1f} s")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    record = {
        "what": "sensitivity of one node, A-DGN (gcn), 20 layers, 64 units, Coauthor Physics",
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "commit": commit,
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "nodes": x.size(0),
        "edges": edge_index.size(1),
        "peak_memory_gb": round(peak, 2),
        "measured": measured,
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    temporary = arguments.out.with_suffix(".tmp")
    with temporary.open("w") as file:
        file.write(json.dumps(record, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(arguments.out)
    print(f"peak memory {peak:.2f} GB; written to {arguments.out}")


if __name__ == "__main__":
    main()
