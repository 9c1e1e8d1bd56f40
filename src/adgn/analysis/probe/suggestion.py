"""From what the probe found to a configuration."""

from collections.abc import Mapping
from typing import Any

from adgn.analysis.probe.hops import OPERATORS
from adgn.analysis.probe.measure import Screening
from adgn.graph import Direction

_FEWEST_LAYERS = 4
_LAYERS_PER_HOP = 2  # a step of A-DGN is short: it takes two to hear a neighbour well
# Sums grow with the degree, which hurts a linear model more than a network, whose weights and
# nonlinearity are trained around it. So GCN's operator has to be better by far.
_SHARE_OF_SUMS = 0.5


def suggest(
    screened: Screening, worth: bool, direction: Direction | None, hops: int, directed: bool
) -> Mapping[str, Mapping[str, Any]]:
    """Sections of a configuration that `adgn train --config` and `adgn fit --config` take.

    Sums are aggregated unless they gain less than half of what mean or GCN's operator gain over the
    features alone. By GCN's operator neighbours arrive averaged, so that the integration time, step
    size times layers, is the number of hops.

    Args:
        screened: Which operators were compared, by which sums or GCN's operator are chosen.
        worth: Whether the graph helps on validation rows, be it sure or not. Without evidence the
            default is kept: a closed form that finds nothing is no proof that a network finds
            nothing, and A-DGN hears the features of a node by weights of their own.
        direction: The best direction; `None`: there are no edges, and a network on the features
            alone is suggested.
        hops: How many hops carry information.
        directed: Whether the direction of edges means something.
    """
    if direction is None:
        return {"model": {"name": "mlp", "num_layers": 2}}
    if not worth:
        return {"model": {"name": "adgn", "num_layers": _FEWEST_LAYERS, "phi": "sum"}}
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
    own = screened.features_alone
    averaged = max(score["mean"], score["gcn"]) - own
    sums = max(score["sum"], score["laplacian"]) - own >= min(_SHARE_OF_SUMS * averaged, averaged)
    layers = max(_FEWEST_LAYERS, _LAYERS_PER_HOP * hops)
    model: dict[str, Any] = {"name": "adgn", "num_layers": layers, "phi": "sum" if sums else "gcn"}
    if not sums:
        model["epsilon"] = min(1.0, hops / layers)
    if directed:
        model["direction"] = direction
    return {"model": model}
