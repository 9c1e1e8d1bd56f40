"""Writes the generated parts of docs/integrators.md: what integrators and fields cost and keep.

    python scripts/document_integrators.py            # prints the page
    python scripts/document_integrators.py --write    # writes it, and the figure

The numbers are those of results/integrators.json and results/fields.json, which
benchmarks/integrators.py and benchmarks/fields.py measure.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from pages import fill_places, markdown_table, print_or_write

from adgn._util.figures import LIGHT, STYLE, line_style, theme_css, themed_svg

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "integrators.md"
RESULTS, FIELDS = ROOT / "results" / "integrators.json", ROOT / "results" / "fields.json"
FIGURE = ROOT / "docs" / "images" / "integrators-error.svg"
INK = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
COLOURS: dict[Any, Any] = {**dict.fromkeys(INK, LIGHT["ink"]), "grid.color": LIGHT["rule"]}


def measured(results: dict[str, Any]) -> str:
    """Order, cost, error at equal cost, growth and time in a table."""
    found = results["integrators"]
    euler = found["euler"]["seconds"]
    rows, errors = [], {}
    for name, about in found.items():
        fits = [one for one in about["errors"] if one["rates"] <= 70] or about["errors"][:1]
        best = min(fits, key=lambda one: one["error"])
        if best["rates"] <= 70:
            errors[name] = best["error"]
        rows.append(
            [
                f"`{name}`",
                str(about["order"]),
                about["cost"],
                f"{best['error']:.1e} ({best['rates']} rates)",
                f"{about['growth']:.3g}",
                f"{about['seconds'] / euler:.1f}",
            ]
        )
    head = ["integrator", "order", "cost of a step", "error at equal cost"]
    head += ["norm after 10,000 steps", "time of a training step"]
    about = results["environment"]
    least = min(errors, key=lambda name: errors[name])
    kept = [f"`{name}`" for name, one in found.items() if abs(one["growth"] - 1) <= 0.01]
    said = (
        f"`{least}` has the smallest error at equal cost, {errors[least]:.1e} against "
        f"{errors['euler']:.1e} of `euler`. After 10,000 steps the norm is within 1 % of the exact "
        f"one with {', '.join(kept)}.\n\n"
    )
    return (
        said
        + markdown_table(head, rows)
        + "\nError: the largest at time 2 of a layer's states (100 nodes, 16 channels), with at "
        "most about 64 rates. Norm: of a linear antisymmetric field with steps of 0.1, as a "
        "multiple of the first; exact is 1. Time: as a multiple of forward Euler's, property "
        "prediction with 20 "
        f"layers of 30 units, one thread. {about['processor']}, torch {about['torch']}, "
        f"{results['date']}, commit {about['git_commit'][:7]}: `python benchmarks/integrators.py`."
    )


def fields(results: dict[str, Any]) -> str:
    """What the fields do over many steps, and what they cost, in a table."""
    found = results["fields"]
    rows = []
    for name, about in found.items():
        order, drift = about["order"], about["energy_drift"]
        rows.append(
            [
                f"`{name}`",
                str(about["hops"]),
                "–" if order is None else f"{order:.1f}",
                _factor(about["growth"]),
                "–" if drift is None else f"{100 * drift:.2g} %",
                _factor(about["gradient"]),
                f"{about['seconds'] / found['adgn']['seconds']:.1f}",
                f"{about['kept']:.1f}",
            ]
        )
    head = ["field", "hops per layer", "order", "norm after 10,000 steps", "energy drift"]
    head += ["gradient after 1000 steps", "time of a training step", "kept per layer"]
    about = results["environment"]
    said = ""
    for key, what in (("gradient", "a gradient"), ("growth", "the states")):
        factors = {name: _from_one(one[key]) for name, one in found.items()}
        near, far = (choose(factors, key=factors.__getitem__) for choose in (min, max))
        shown = {name: _factor(found[name][key]) for name in (near, far)}
        said += (
            f"`{near}` keeps the size of {what} best (× {shown[near]}), `{far}` least "
            f"(× {shown[far]}). "
        )
    quick = min(found, key=lambda name: found[name]["seconds"])
    said += f"The quickest training step is that of `{quick}`.\n\n"
    return (
        said
        + markdown_table(head, rows)
        + "\nEach model as it starts, with its default options. Order: measured at time 1; – where "
        "layers have weights of their own or there is no step size. Norm: of the states, as a "
        "multiple of the first. Energy drift: the largest distance from the first energy over "
        "10,000 steps, for models that have one. Gradient: its norm in the first states as a "
        "multiple of that in the last ones. These on an undirected graph of 30 nodes with 8 "
        "channels. Time: as a multiple of `adgn`'s, property prediction with 20 layers of 30 "
        "units, one thread, processor time. Kept: memory for the backward pass, in states of all "
        f"nodes. {about['processor']}, torch {about['torch']}, {results['date']}, commit "
        f"{about['git_commit'][:7]}: `python benchmarks/fields.py`."
    )


def _from_one(value: float | None) -> float:
    """How many times a size has grown or shrunk."""
    return math.inf if value is None or value <= 0 else max(value, 1 / value)


def _factor(value: float | None) -> str:
    return "overflow" if value is None else f"{value:.2g}"


def drawn(results: dict[str, Any]) -> str:
    """Error against cost, a line per integrator with fixed steps and a point per adaptive one."""
    with mpl.rc_context(STYLE | COLOURS):
        figure = Figure(figsize=(7.2, 4.4), layout="constrained", facecolor=LIGHT["ground"])
        axes = figure.add_subplot(facecolor=LIGHT["ground"])
        for number, (name, about) in enumerate(results["integrators"].items()):
            points = [(one["rates"], one["error"]) for one in about["errors"]]
            style = line_style(number) | {"markersize": 5, "clip_on": False}
            axes.loglog(*zip(*points, strict=True), label=name, **style)
        axes.minorticks_off()
        rates = [2**power for power in range(2, 10)]
        axes.set_xticks(rates, labels=list(map(str, rates)))
        powers = range(-7, 1)
        axes.set_yticks(
            [10.0**power for power in powers], labels=[f"1e{power}" for power in powers]
        )
        axes.set_xlabel("rates taken, each one product with the graph")
        axes.set_ylabel("largest error at time 2")
        figure.legend(loc="outside right upper")
    title = "Error of the integrators against the rates that they take"
    description = (
        "Largest error at time 2 of the states of an anti-symmetric layer, by number of rates."
    )
    return themed_svg(figure, "integrators-error", title, description, theme_css()) + "\n"


def page(text: str) -> str:
    """The page with its generated parts as they must be now."""
    integrators, of_fields = (
        json.loads(path.read_text(encoding="utf-8")) for path in (RESULTS, FIELDS)
    )
    parts = {"integrators": measured(integrators), "fields": fields(of_fields)}
    return fill_places(text, parts, PAGE)


if __name__ == "__main__":
    print_or_write(__doc__, PAGE, lambda: page(PAGE.read_text(encoding="utf-8")))
    if "--write" in sys.argv:
        FIGURE.write_text(drawn(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
