"""From what the probe found to a configuration."""

from collections.abc import Mapping
from typing import Any

from adgn.analysis.probe.hops import OPERATORS
from adgn.analysis.probe.measure import Screening
from adgn.graph import Direction

_FEWEST_LAYERS = 4
_LAYERS_PER_HOP = 2  # a step of A-DGN is short: it takes two to hear a neighbour well


def suggest(
    screened: Screening, worth: bool, direction: Direction | None, hops: int, directed: bool
) -> Mapping[str, Mapping[str, Any]]:
    """Sections of a configuration that `adgn train --config` and `adgn fit --config` take.

    Args:
        screened: Which operators were compared, by which sums or GCN's operator are chosen.
        worth: Whether the graph helps on validation rows, be it sure or not; without, a network on
            the features alone is suggested.
        direction: The best direction.
        hops: How many hops carry information.
        directed: Whether the direction of edges means something.
    """
    if not worth or direction is None:
        return {"model": {"name": "mlp", "num_layers": 2}}
    score = {
        operator: max(
            (
                value
                for view, value in screened.scores.items()
                if view.operator == operator and view.direction == direction
            ),
            default=float("-inf"),
        )
        for operator in OPERATORS
    }
    sums = max(score["sum"], score["laplacian"]) >= max(score["mean"], score["gcn"])
    model: dict[str, Any] = {
        "name": "adgn",
        "num_layers": max(_FEWEST_LAYERS, _LAYERS_PER_HOP * hops),
        "phi": "sum" if sums else "gcn",
    }
    if directed:
        model["direction"] = direction
    return {"model": model}
