"""What the integrators of A-DGN cost and how exact they are.

    python benchmarks/integrators.py [--out FILE]

On a random graph of 100 nodes with 16 channels, in double precision, the error at time 2 of the
field of an anti-symmetric layer, beside a solution with very small steps, for some numbers of
rates. On a linear antisymmetric field the growth of the norm over 10,000 steps of 0.1. And the time
of one training step of property prediction (512 graphs of 25 to 34 nodes, 20 steps of 30 channels,
one thread) as a multiple of forward Euler's in the same run.
"""

import argparse
import json
import statistics
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
from models import random_graphs

from adgn._util.environment import environment
from adgn._util.files import write_file
from adgn.nn import AntiSymmetricConv, build_model
from adgn.nn.integrators import INTEGRATORS, RK4, Adaptive, VectorField

OUT = Path(__file__).resolve().parents[1] / "results" / "integrators.json"
STEPS = (4, 8, 16, 32, 64)
DRIFT_STEPS, ROUNDS = 10_000, 7


class Counted:
    """A right-hand side that counts how often it is asked."""

    def __init__(self, field: VectorField) -> None:
        self.field, self.count = field, 0

    def wrapped(self) -> VectorField:
        """The same field, counting."""

        def phi(x: torch.Tensor) -> torch.Tensor:
            self.count += 1
            return self.field.phi(x)

        return VectorField(self.field.w_self, phi, self.field.bias, self.field.act)


def errors(name: str) -> list[dict[str, float]]:
    """Rates taken and the largest error at time 2, for several step sizes."""
    torch.manual_seed(0)
    edges = torch.randint(0, 100, (2, 200))
    layer = AntiSymmetricConv(16, "gcn", gamma=0.1).double().requires_grad_(False)
    x = torch.randn(100, 16, dtype=torch.float64)
    field = layer.field(x, torch.cat([edges, edges.flip(0)], dim=1))
    exact = RK4.advance(lambda _: field, x, 2 / 2000, 0, 2000)
    found = []
    for count in STEPS:
        counted = Counted(field)
        made = counted.wrapped()
        states = INTEGRATORS[name].advance(lambda _, made=made: made, x, 2 / count, 0, count)
        error = float((states - exact).abs().max())
        found.append({"steps": count, "rates": counted.count, "error": error})
        if isinstance(INTEGRATORS[name], Adaptive):
            break  # it chooses its own steps
    return found


def drift(name: str) -> float:
    """By what factor the norm changes on a rotation, over many steps."""
    torch.manual_seed(0)
    weight = torch.randn(8, 8, dtype=torch.float64) / 8**0.5
    field = VectorField(weight - weight.t(), torch.zeros_like, None, None)
    x = torch.randn(4, 8, dtype=torch.float64)
    with torch.no_grad():
        states = INTEGRATORS[name].advance(lambda _: field, x, 0.1, 0, DRIFT_STEPS)
    return float(states.norm() / x.norm())


def seconds_per_step() -> dict[str, float]:
    """The median time of a training step, rounds of all integrators in turn."""
    blocks, x, y = random_graphs(512)
    batch = blocks.select(torch.arange(512))
    owner = torch.repeat_interleave(blocks.node_ptr.diff())
    models = {
        name: build_model("adgn", 2, 30, 1, 20, level="graph", integrator=name)
        for name in INTEGRATORS
    }
    times: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(ROUNDS):
        for name, model in models.items():
            started = time.process_time()
            loss = (model(x, batch, batch=owner, batch_size=512) - y).square().mean()
            loss.backward()
            times[name].append(time.process_time() - started)
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def main() -> None:
    """Measures all and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    seconds = seconds_per_step()
    found: dict[str, Any] = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "environment": environment(),
        "integrators": {
            name: {
                "order": integrator.order,
                "cost": integrator.cost,
                "errors": errors(name),
                "growth": drift(name),
                "seconds": seconds[name],
            }
            for name, integrator in INTEGRATORS.items()
        },
    }
    write_file(arguments.out, json.dumps(found, indent=1).encode() + b"\n")
    for name, about in found["integrators"].items():
        print(name, about["growth"], about["seconds"] / seconds["euler"], about["errors"][-1])


if __name__ == "__main__":
    main()
