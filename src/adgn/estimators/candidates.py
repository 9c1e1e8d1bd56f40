"""From what a graph looks like to the networks that are tried."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adgn.analysis.probe.hops import HopView
from adgn.analysis.probe.measure import Screening
from adgn.data.own.inputs import Inputs
from adgn.graph import OperatorDirection

_HUGE = 200_000  # nodes: above, networks are narrower and keep fewer states for the gradient
RESERVOIR = "adgn-reservoir"
_LARGE = 5_000_000  # nodes times width plus edges: above, fewer networks are tried


@dataclass(frozen=True)
class Candidate:
    """A network to train.

    Attributes:
        name: What tables and folders call it.
        direction: Where nodes listen.
        model: The model section of a configuration.
        settings: Other sections.
    """

    name: str
    direction: OperatorDirection
    model: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)


def closed_form_views(probe: Screening) -> list[HopView]:
    """The views that become closed-form members: features alone, and the two best with the graph.

    The second one goes another way than the first, by another operator or in another direction.
    """
    ranked = probe.ranked()
    views = [HopView(), *ranked[:1]]
    views += [
        view
        for view in ranked[1:]
        if (view.operator, view.direction) != (ranked[0].operator, ranked[0].direction)
    ][:1]
    return views


def default_candidates(inputs: Inputs, probe: Screening, metric: str, rows: int) -> list[Candidate]:
    """The networks that `fit` trains where nothing else is asked for.

    A-DGN by sums and by GCN's operator, a deep GCN with residuals and layer normalisation,
    GraphSAGE, and a network on the features alone, each listening where closed-form models found
    most. On a large graph: the A-DGN whose operator the closed-form models prefer, GraphSAGE, and
    the features alone.

    Args:
        inputs: The graph.
        probe: What closed-form models found.
        metric: What early stopping follows, as the training loop calls it.
        rows: How many rows train.
    """
    best = probe.best_of()
    direction: OperatorDirection = "in" if best is None else best.operator_direction
    huge = inputs.num_nodes > _HUGE
    width = 32 if huge else 64 if rows < 20_000 else 128
    work = inputs.num_nodes * width + 10 * inputs.edge_index.size(1)
    large = work > _LARGE
    settings = {
        "optimizer": {"name": "adam", "lr": 0.01, "weight_decay": 5e-4},
        "loop": {"max_epochs": 200 if large else 500},
        "stopping": {"monitor": metric, "patience": 20 if large else 60},
    }
    common = {"hidden_channels": width, "dropout": 0.5}
    normed = {**common, "act": "relu", "norm": "layer", "residual": True}

    def adgn(phi: str, layers: int) -> Candidate:
        model = {"name": "adgn", "num_layers": layers, "phi": phi, "epsilon": 0.1, "gamma": 0.1}
        model["memory"] = "checkpoint" if huge else "full"
        return Candidate(f"adgn-{phi}", direction, {**model, **common}, settings)

    alone = {"name": "mlp", "num_layers": 2, **normed}
    features = Candidate("mlp", direction, alone, settings)
    if best is None:
        return [adgn("sum", 4), features]
    sage = {"name": "graphsage", "num_layers": 2, **normed}
    if large:
        chosen = adgn("sum", 4) if best.operator == "sum" else adgn("gcn", 8)
        return [chosen, Candidate("graphsage", direction, sage, settings), features]
    gcn = {"name": "gcn", "num_layers": 5, **normed}
    shallow = {"name": "gcn", "num_layers": 2, **common, "act": "relu"}
    # Where few rows train, closed-form models are a poor guide to the direction.
    undirected = [Candidate("gcn-residual-undirected", "undirected", gcn, settings)]
    return [
        adgn("sum", 4),
        adgn("gcn", 8),
        Candidate("gcn-residual", direction, gcn, settings),
        *(undirected if inputs.directed and direction != "undirected" else []),
        Candidate("gcn", direction, shallow, settings),
        Candidate("graphsage", direction, sage, settings),
        features,
    ]


# What a reservoir is tried with: fits in closed form take seconds, so several are compared.
_RESERVOIR_UNITS = 512
_RADII: tuple[float, ...] = (0.1, 3.0, 20.0, 100.0)
_STEP_SIZES: tuple[float, ...] = (0.1, 1.0)


def named_candidates(
    name: str, options: Mapping[str, Any], direction: OperatorDirection
) -> list[Candidate]:
    """The networks that `fit` trains for a model by name.

    One, with the options given. Of the reservoirs, `"adgn-reservoir"` (A-DGN with random weights)
    and `"gesn"`, whose readouts are solved in closed form: one for each of a few step sizes or
    radii, unless the options say which.

    Args:
        name: A registered model, or `"adgn-reservoir"`.
        options: Of the model.
        direction: Where nodes listen.

    Example:
        >>> [candidate.name for candidate in named_candidates("adgn-reservoir", {}, "in")]
        ['adgn-reservoir-epsilon-0.1', 'adgn-reservoir-epsilon-1']
        >>> [candidate.name for candidate in named_candidates("gcn", {"num_layers": 2}, "in")]
        ['gcn']
    """
    if name not in (RESERVOIR, "gesn"):
        settings = {
            "optimizer": {"lr": 0.01, "weight_decay": 5e-4},
            "loop": {"max_epochs": 500},
            "stopping": {"patience": 60},
        }
        model = {"hidden_channels": 64, "num_layers": 4, **options, "name": name}
        return [Candidate(name, direction, model, settings)]
    model = {"name": name, "hidden_channels": _RESERVOIR_UNITS, "num_layers": 3, **options}
    varied, values = "radius", _RADII
    if name == RESERVOIR:
        model |= {"name": "adgn", "train_recurrent": False, "readout": "ridge"}
        varied, values = "epsilon", _STEP_SIZES
    if varied in options or model.get("readout", "ridge") != "ridge":
        return [Candidate(name, direction, model)]
    return [
        Candidate(f"{name}-{varied}-{value:g}", direction, {**model, varied: value})
        for value in values
    ]


def search_space(model: str, *, solved: bool = False) -> dict[str, list[Any]]:
    """What a search over time chooses from, for a model by name.

    `solved`: its readout is solved in closed form, without optimiser and dropout.
    """
    if solved:
        own: dict[str, list[Any]] = {
            "epsilon": [0.03, 0.1, 0.3, 1.0, 3.0],
            "gamma": [0.0, 0.1, 0.3],
        }
        if model == "gesn":
            own = {
                "radius": [0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0],
                "input_scale": [0.1, 0.3, 1.0, 3.0, 10.0],
            }
        own["num_layers"] = [1, 2, 3, 4, 8, 16]
        return {f"model.{key}": values for key, values in own.items()}
    space: dict[str, list[Any]] = {
        "optimizer.lr": [0.03, 0.01, 0.003, 0.001],
        "optimizer.weight_decay": [0.0, 5e-4, 5e-3, 5e-2],
        "model.hidden_channels": [32, 64, 128],
        "model.dropout": [0.0, 0.3, 0.5, 0.7],
        "model.num_layers": [1, 2, 4, 8, 16],
    }
    if model == "adgn":
        space["model.epsilon"] = [0.03, 0.1, 0.3, 1.0]
        space["model.gamma"] = [0.0, 0.1, 0.3]
    return space
