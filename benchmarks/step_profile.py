"""Where the time of a training step goes: A-DGN on one graph, and attention on many small ones.

    python benchmarks/step_profile.py --data FOLDER     # measure, write results/step-profile.json

The parts of a step are measured by themselves, forward and back, with the gradient that comes in
given: the encoder, the integration, readout and loss, and the optimiser. What a whole step takes
beyond their sum is the work between them. The floor is the arithmetic of the integration's dense
products at the rate of a large product of this machine: no neighbour sum, no activation, no memory.
GAT and GRAND, in the first batch of graph property prediction: all products with weights, all
attention, and the rest of a step. One thread, the least processor time over turns that alternate
between the parts.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from adgn._util.environment import load_average
from adgn.bench.cases import CASES
from adgn.bench.run import describe_machine, measured_commit
from adgn.bench.sources import NodeTask
from adgn.bench.workloads import Workload, load_source
from adgn.graph import attend, backend
from adgn.nn import build_model
from adgn.nn.conv import GATConv
from adgn.training import prepare, resolve_config
from adgn.training.checkpoint import OTHER_OUT, write_atomically

OUT = Path(__file__).resolve().parent.parent / "results" / "step-profile.json"
NAMES = ("physics", "computers", "pubmed", "pubmed-gcn", "texas")
LAYERS, HIDDEN = 20, 30  # of graph property prediction
# Forward and backward passes of the attention per layer. GRAND evaluates four rates, and again when
# it goes back.
PASSES = {"gat": (1, 1), "grand": (8, 4)}
SIDE = 1024  # of the dense product that says what rate this machine has


def parts_of(workload: Workload, source: NodeTask) -> dict[str, Callable[[], object]]:
    """What a step does, part by part, and the whole of it."""
    torch.manual_seed(0)
    network = build_model(
        "adgn",
        source.sizes()["features"],
        workload.hidden,
        source.num_classes,
        num_layers=workload.layers,
        phi=workload.phi,
    )
    x, edges, train = source.features, source.edge_index, source.train
    y = source.classes[train]
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)
    states = network.encode(x).detach().requires_grad_()
    last = network.propagation(states, edges).detach().requires_grad_()

    def loss(states: Tensor) -> Tensor:
        return cross_entropy(network.read(states)[train], y)

    def step() -> None:
        optimizer.zero_grad()
        cross_entropy(network(x, edges)[train], y).backward()
        optimizer.step()

    step()
    given = torch.randn_like(states)
    return {
        "encoder": lambda: network.encode(x).backward(given),
        "integration": lambda: network.propagation(states, edges).backward(given),
        "readout and loss": lambda: loss(last).backward(),
        "optimiser": optimizer.step,
        "step": step,
    }


def attention_parts(model: str) -> dict[str, Callable[[], object]]:
    """A step of GAT or GRAND, and one forward and one backward pass of what it does many times."""
    choice = {"name": model, "num_layers": LAYERS, "hidden_channels": HIDDEN}
    prepared = prepare(resolve_config({"task": {"name": "sssp"}, "model": choice}))
    batch = next(iter(prepared.data.train.batches(0)))
    trainer, network = prepared.trainer, prepared.trainer.model.train()
    layer = next(part for part in network.modules() if isinstance(part, GATConv))
    x = torch.randn(batch.x.size(0), HIDDEN, requires_grad=True)
    operator = layer.operator(x, batch.graph)
    weights = layer.state_weights().detach().requires_grad_()
    product = x @ weights.t()
    states = product.detach().requires_grad_()
    heard = attend(operator, states, heads=1)
    in_states, in_heard = torch.randn_like(states), torch.randn_like(heard)

    def attention() -> None:
        with torch.no_grad():
            attend(operator, states, heads=1)

    return {
        "product": lambda: x.detach() @ weights.detach().t(),
        "product back": lambda: torch.autograd.grad(product, (x, weights), in_states, True),
        "attention": attention,
        "attention back": lambda: torch.autograd.grad(heard, states, in_heard, True),
        "step": lambda: trainer._step(trainer._backward(batch)),
    }


def least_times(parts: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """The least processor time of each, in milliseconds."""
    best, end = dict.fromkeys(parts, math.inf), time.monotonic() + seconds
    while time.monotonic() < end:
        for name, part in parts.items():
            start = time.process_time()
            part()
            best[name] = min(best[name], 1e3 * (time.process_time() - start))
    return best


def dense_rate() -> float:
    """Operations per second of a large dense product, at best."""
    a, b = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    milliseconds = least_times({"product": lambda: a @ b}, 1.0)["product"]
    return 2e3 * SIDE**3 / milliseconds


def measure(name: str, root: Path | None, rate: float, seconds: float) -> dict[str, Any]:
    """The profile of one case."""
    (workload,) = CASES[name].points
    source = load_source(workload, root)
    assert isinstance(source, NodeTask)
    found = least_times(parts_of(workload, source), seconds)
    # Forward, the gradient in the states and the one in the weights: each a product with [M V].
    operations = 3 * 2 * source.features.size(0) * 2 * workload.hidden**2 * workload.layers
    found = {"floor": 1e3 * operations / rate, **found}
    shown = ", ".join(f"{part} {value:.3g}" for part, value in found.items())
    print(f"{name}: {shown} ms", flush=True)
    return {"case": name, "layers": workload.layers, "hidden": workload.hidden, "ms": found}


def measure_attention(model: str, seconds: float) -> dict[str, Any]:
    """The profile of GAT or GRAND: what the passes of a step take, and the whole of it."""
    found = least_times(attention_parts(model), seconds)
    ahead, back = PASSES[model]
    parts = {
        kind: LAYERS * (ahead * found[kind] + back * found[f"{kind} back"])
        for kind in ("product", "attention")
    }
    parts["step"] = found["step"]
    shown = ", ".join(f"{part} {value:.3g}" for part, value in parts.items())
    print(f"{model}: {shown} ms", flush=True)
    return {"model": model, "layers": LAYERS, "hidden": HIDDEN, "ms": parts}


def main() -> None:
    """Parses the command line and measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="data root; default: $ADGN_DATA or the cache")
    parser.add_argument("--seconds", type=float, default=15.0, help="per case")
    parser.add_argument("--out", type=Path, default=OUT, help="default: results/step-profile.json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    load, rate = load_average(), dense_rate()
    result = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": measured_commit(),
        "machine": describe_machine(backend().instruction_set).model_dump(),
        "load_average": load,
        "dense_gflops": rate / 1e9,
        "cases": [measure(name, arguments.data, rate, arguments.seconds) for name in NAMES],
        "attention": [measure_attention(model, arguments.seconds) for model in PASSES],
    }
    write_atomically(arguments.out, (json.dumps(result, indent=1) + "\n").encode(), OTHER_OUT)
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
