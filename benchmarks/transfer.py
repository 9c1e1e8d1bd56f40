"""How far a number travels along a line: A-DGN, a GCN with residual and norm, and a plain GCN.

    python benchmarks/transfer.py [--out FILE]

A number at one end of a line is to be reported at the other, 5 to 50 edges away, by networks of
one depth, width and number of epochs. Each model chooses its settings by the validation error of
one seed: all of them the learning rate, the GCN with residual connections also its normalisation.
Then the test error with three seeds. Distances that the file has are not measured again.
"""

import argparse
import json
import math
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from adgn._util.environment import environment
from adgn._util.files import write_file
from adgn.experiments.transfer import CONTENDERS, DISTANCES, run_transfer
from adgn.training import DivergedError

OUT = Path(__file__).resolve().parents[1] / "results" / "transfer.json"
RATES, NORMS, SEEDS, EPOCHS = (0.002, 0.01), ("batch", "layer"), (0, 1, 2), 10


def settings_of(model: str) -> list[dict[str, dict[str, Any]]]:
    """What a model may choose from."""
    rates: list[dict[str, dict[str, Any]]] = [{"optimizer": {"lr": rate}} for rate in RATES]
    if not CONTENDERS[model].get("residual"):
        return rates
    return [{**rate, "model": {"norm": norm}} for norm in NORMS for rate in rates]


def errors(model: str, distance: int, settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Validation and test error of one training; infinite where it diverges."""
    try:
        (outcome,) = run_transfer([distance], [model], epochs=EPOCHS, seed=seed, settings=settings)
    except DivergedError:
        return {"validation": math.inf, "test": math.inf}
    return {
        "validation": outcome.validation,
        "test": outcome.error,
        "constant": outcome.constant,
        "num_layers": outcome.num_layers,
        "seconds": outcome.seconds,
    }


def measure(distance: int) -> list[dict[str, Any]]:
    """All models at one distance."""
    found = []
    for model in CONTENDERS:
        tried = [(errors(model, distance, s, SEEDS[0]), s) for s in settings_of(model)]
        first, chosen = min(tried, key=lambda pair: pair[0]["validation"])
        runs = [first, *(errors(model, distance, chosen, seed) for seed in SEEDS[1:])]
        found.append(
            {
                "model": model,
                "distance": distance,
                "num_layers": first["num_layers"],
                "settings": chosen,
                "tried": len(tried),
                "errors": [run["test"] for run in runs],
                "constant": first["constant"],
            }
        )
        print(distance, model, chosen, [f"{run['test']:.3g}" for run in runs], flush=True)
    return found


def main() -> None:
    """Measures what is not in the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    out = parser.parse_args().out
    rows = json.loads(out.read_text(encoding="utf-8"))["rows"] if out.exists() else []
    for distance in DISTANCES:
        if any(row["distance"] == distance for row in rows):
            continue
        rows += measure(distance)
        made = {
            "date": datetime.now(timezone.utc).date().isoformat(),
            "command": "python benchmarks/transfer.py",
            "environment": environment(),
            "epochs": EPOCHS,
            "seeds": list(SEEDS),
            "rows": rows,
        }
        write_file(out, json.dumps(made, indent=1).encode() + b"\n")


if __name__ == "__main__":
    main()
