"""What the fields, the right-hand sides of the models, do over many steps, and what they cost.

    python benchmarks/fields.py [--out FILE] [--only FIELD ...]

Each model with the weights that it starts from and its default step size. On one random undirected
graph of 30 nodes with 8 channels, in double precision: the measured order of its steps, the norm of
the states after 10,000 steps, the drift of the energy over as many where the model has one, and the
norm of a gradient after 1000 steps. On 512 graphs of 25 to 34 nodes, 20 steps of 30 channels, one
thread: the time of a training step as a multiple of A-DGN's in the same run, and what is kept for
the backward pass.
"""

import argparse
import json
import math
import statistics
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
from models import random_graphs
from torch import Tensor, nn

from adgn._util.environment import environment
from adgn._util.files import write_file
from adgn.nn import build_model, model_spec

OUT = Path(__file__).resolve().parents[1] / "results" / "fields.json"
# The steps alone: MLPs between blocks are no part of a field.
FIELDS: dict[str, dict[str, Any]] = {
    "adgn": {"name": "adgn"},
    "adgn, rk4": {"name": "adgn", "integrator": "rk4"},
    "swan": {"name": "swan"},
    "stable-cheb": {"name": "stable-cheb"},
    "phdgn": {"name": "phdgn"},
    "sonar": {"name": "sonar", "block_mlp": None},
    "graphcon": {"name": "graphcon"},
    "mpssm": {"name": "mpssm", "block_mlp": None},
    "pdegcn": {"name": "pdegcn"},
    "egnn": {"name": "egnn"},
    "gde": {"name": "gde"},
    "cgnn": {"name": "cgnn"},
}
NODES, CHANNELS = 30, 8
LONG, DEEP, ROUNDS = 10_000, 1000, 5
COARSE, FINE, REFERENCE, TIME = 32, 64, 2048, 1.0


def hops(options: dict[str, Any]) -> int:
    """How far a layer looks: with RK4 in place of Euler four times as far."""
    rates = 4 if options.get("integrator") == "rk4" else 1
    return rates * model_spec(options["name"]).hops_per_layer


def graph() -> Tensor:
    """A ring with chords, both directions of every edge."""
    generator = torch.Generator().manual_seed(0)
    ring = torch.stack([torch.arange(NODES), (torch.arange(NODES) + 1) % NODES])
    chords = torch.randint(0, NODES, (2, NODES), generator=generator)
    edges = torch.cat([ring, chords[:, chords[0] != chords[1]]], dim=1)
    return torch.cat([edges, edges.flip(0)], dim=1)


def steps(field: str, layers: int, **options: Any) -> nn.Module:
    """The steps of a model, with the same weights whatever their number where they are shared."""
    torch.manual_seed(0)
    given = FIELDS[field] | options
    model = build_model(given["name"], 2, CHANNELS, 1, layers, **_without_name(given))
    return model.double().requires_grad_(False).eval().propagation


def first_states() -> Tensor:
    """The states that all start from."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(NODES, CHANNELS, dtype=torch.float64, generator=generator)


def measured_order(field: str) -> float | None:
    """By which power of the step size the error at time 1 falls; `None`: there is no equation."""
    names = model_spec(FIELDS[field]["name"]).options.model_fields
    shares = FIELDS[field]["name"] != "pdegcn"  # a layer of which has weights of its own
    if "epsilon" not in names or not shares:
        return None
    x, edges = first_states(), graph()
    at_one = {
        count: steps(field, count, epsilon=TIME / count)(x, edges)
        for count in (COARSE, FINE, REFERENCE)
    }
    coarse, fine = (float((at_one[n] - at_one[REFERENCE]).abs().max()) for n in (COARSE, FINE))
    return math.log2(coarse / fine)


def growth(field: str) -> float:
    """The norm of the states after many steps, as a multiple of the first."""
    x = first_states()
    return float(steps(field, LONG)(x, graph()).norm() / x.norm())


def energy_drift(field: str) -> float | None:
    """The largest distance of the energy from the first one over many steps, relative to it."""
    x, edges = first_states(), graph()
    run: Any = steps(field, LONG)
    if field == "phdgn":
        before = run.energy(run.pairs(x), edges).sum()
        operator = run.prepared(x, edges, None)
        every = run.steps(run.pairs(x), operator, 0, LONG)
        energies = [run.energy(pairs, edges).sum() for pairs in every]
    elif field == "sonar":
        before = run.energy(x, run.first_velocity(x), edges)
        energies = [run.energy(*wave, edges) for wave in run.waves(x, edges)]
    else:
        return None
    return float((torch.stack(energies) - before).abs().max() / before.abs())


def gradient(field: str) -> float:
    """The norm of a gradient in the first states, as a multiple of that in the last ones."""
    x = first_states().requires_grad_()
    last = steps(field, DEEP)(x, graph())
    direction = torch.randn(
        last.shape, dtype=last.dtype, generator=torch.Generator().manual_seed(2)
    )
    (found,) = torch.autograd.grad(last, x, direction)
    return float(found.norm() / direction.norm())


def costs(fields: list[str]) -> dict[str, dict[str, float]]:
    """Time of a training step, and what is kept for the backward pass, in states per layer."""
    blocks, x, y = random_graphs(512)
    batch = blocks.select(torch.arange(512))
    owner = torch.repeat_interleave(blocks.node_ptr.diff())
    networks = {
        field: build_model(
            FIELDS[field]["name"], 2, 30, 1, 20, level="graph", **_without_name(FIELDS[field])
        )
        for field in fields
    }
    times: dict[str, list[float]] = {field: [] for field in networks}
    kept: dict[str, int] = {}
    for _ in range(ROUNDS):
        for field, network in networks.items():
            sizes: dict[int, int] = {}

            def note(tensor: Tensor, sizes: dict[int, int] = sizes) -> Tensor:
                storage = tensor.untyped_storage()
                sizes[storage.data_ptr()] = storage.nbytes()
                return tensor

            started = time.process_time()
            with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
                loss = (network(x, batch, batch=owner, batch_size=512) - y).square().mean()
            loss.backward()
            times[field].append(time.process_time() - started)
            kept[field] = sum(sizes.values())
    one_state = x.size(0) * 30 * 4
    return {
        field: {
            "seconds": statistics.median(times[field][1:]),
            "kept": kept[field] / one_state / 20,
        }
        for field in networks
    }


def _without_name(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != "name"}


def main() -> None:
    """Measures all and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    only = parser.add_argument("--only", nargs="+", choices=FIELDS, default=list(FIELDS))
    only.help = "measure these (times are in units of adgn's, so have it among them); others stay"
    arguments = parser.parse_args()
    out: Path = arguments.out
    torch.set_num_threads(1)
    cost = costs(arguments.only)
    before = json.loads(out.read_text(encoding="utf-8"))["fields"] if out.exists() else {}
    found: dict[str, Any] = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "environment": environment(),
        "fields": before,
    }
    for field in arguments.only:
        found["fields"][field] = {
            "hops": hops(FIELDS[field]),
            "order": measured_order(field),
            "growth": growth(field),
            "energy_drift": energy_drift(field),
            "gradient": gradient(field),
            **cost[field],
        }
        print(field, found["fields"][field], flush=True)
        write_file(out, json.dumps(found, indent=1).encode() + b"\n")


if __name__ == "__main__":
    main()
