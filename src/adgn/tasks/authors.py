"""What the authors of methods that the A-DGN paper quotes or names chose for heterophilic graphs.

Of each method a grid with its authors' settings in it, a smaller one with those of the graph in
question, and where the values come from. All of them are kept in one form, that of
`adgn.tasks.spaces`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

_Values = dict[str, list[Any]]


class AuthorSpaces(NamedTuple):
    """Two grids and their source; what the authors chose for a graph comes first in the smaller."""

    grid: _Values
    compact: _Values
    source: str
    by_graph: Mapping[str, Mapping[str, Any]] = {}

    def compact_for(self, task: str) -> _Values:
        """The smaller grid for a graph; a repaired graph has the settings of the graph it was."""
        chosen = self.by_graph.get(task.partition("-")[0], {})
        return {
            key: list(dict.fromkeys([chosen.get(key, values[0]), *values]))
            for key, values in self.compact.items()
        }


# Depths that belong to a method and not to a task; H2GCN's states double with every round.
NODE_DEPTHS: Mapping[str, Mapping[str, int]] = {
    "cheb": {"num_layers": 2},
    "gprgnn": {"num_layers": 10},
    "h2gcn": {"num_layers": 2},
    "pathgcn": {"num_layers": 4},
    "sgc": {"num_layers": 2},
}
ROUNDS: Mapping[str, Mapping[str, int]] = {"h2gcn": {"num_layers": 2}}
FEW_ROUNDS: Mapping[str, list[int]] = {"h2gcn": [1, 2]}

_RELU: _Values = {"model.act": ["relu"]}
_UNITS: _Values = {"model.hidden_channels": [64]}


def _gprgnn(rate: float, alpha: float, decay: float, dropped: float = 0.5) -> dict[str, float]:
    """The settings of the authors' script; what it leaves out is the default of their code."""
    optimizer = {"optimizer.lr": rate, "optimizer.weight_decay": decay}
    return {**optimizer, "model.alpha": alpha, "model.propagation_dropout": dropped}


HETEROPHILY: Mapping[str, AuthorSpaces] = {
    "cheb": AuthorSpaces(
        {
            "optimizer.lr": [1e-2, 1e-3],
            "optimizer.weight_decay": [5e-4, 5e-3],
            "model.num_layers": [2, 4],
            **_UNITS,
            **_RELU,
            "model.dropout": [0.0, 0.5],
            "model.degree": [1, 2, 3],
        },
        {
            "optimizer.lr": [1e-2],
            "optimizer.weight_decay": [5e-4, 5e-3],
            "model.num_layers": [2],
            **_UNITS,
            **_RELU,
            "model.dropout": [0.0, 0.5],
            "model.degree": [1, 2, 3],
        },
        "chosen here; the ChebNet paper has no heterophilic graphs",
    ),
    "gprgnn": AuthorSpaces(
        {
            "optimizer.lr": [0.05, 0.01],
            "optimizer.weight_decay": [0.0, 5e-4],
            "model.num_layers": [10],
            **_UNITS,
            **_RELU,
            "model.dropout": [0.5],
            "model.start": ["ppr"],
            "model.alpha": [0.0, 0.1, 0.5, 0.9, 1.0],
            "model.propagation_dropout": [0.0, 0.5, 0.7],
        },
        {
            "optimizer.lr": [0.05, 0.01],
            "optimizer.weight_decay": [0.0, 5e-4],
            "model.num_layers": [10],
            **_UNITS,
            **_RELU,
            "model.dropout": [0.5],
            "model.alpha": [0.5],
            "model.propagation_dropout": [0.0],
        },
        "around the settings of the GPRGNN authors' code",
        {
            "chameleon": _gprgnn(0.05, 1.0, 0.0, 0.7),
            "squirrel": _gprgnn(0.05, 0.0, 0.0, 0.7),
            "actor": _gprgnn(0.01, 0.9, 0.0),
            "cornell": _gprgnn(0.05, 0.9, 5e-4),
            "texas": _gprgnn(0.05, 1.0, 5e-4),
            "wisconsin": _gprgnn(0.05, 1.0, 5e-4),  # from the code of Yan et al.
        },
    ),
    # λ Σ w² of the authors' loss, with λ 5e-4 or 1e-5, is a weight decay of 2 λ in Adam.
    "h2gcn": AuthorSpaces(
        {
            "optimizer.lr": [1e-2],
            "optimizer.weight_decay": [1e-3, 2e-5],
            "model.num_layers": [1, 2],
            **_UNITS,
            "model.encoder": ["linear_no_bias"],
            "model.act": ["relu", None],
            "model.dropout": [0.0, 0.5],
        },
        {
            "optimizer.lr": [1e-2],
            "optimizer.weight_decay": [1e-3, 2e-5],
            "model.num_layers": [1, 2],
            **_UNITS,
            "model.encoder": ["linear_no_bias"],
            "model.act": ["relu", None],
            "model.dropout": [0.0, 0.5],
        },
        "the H2GCN paper's search",
    ),
    "pairnorm": AuthorSpaces(
        {
            "optimizer.lr": [5e-3, 1e-2],
            "optimizer.weight_decay": [5e-4],
            "model.num_layers": [2, 4, 8, 16, 32, 64],
            **_UNITS,
            **_RELU,
            "model.dropout": [0.6],
            "model.norm": ["pair", "pair-si"],
            "model.scale": [1.0],
        },
        {
            "optimizer.lr": [5e-3],
            "optimizer.weight_decay": [5e-4],
            "model.num_layers": [2, 4, 8, 16, 32],  # they try 64 too
            **_UNITS,
            **_RELU,
            "model.dropout": [0.6],
            "model.norm": ["pair", "pair-si"],
            "model.scale": [1.0],
        },
        "settings of GGCN's authors, whose numbers the A-DGN paper quotes, and PN-SI",
    ),
    "pathgcn": AuthorSpaces(
        {
            "optimizer.lr": [1e-2, 1e-3],
            "optimizer.weight_decay": [5e-5, 5e-4, 5e-3],
            "model.num_layers": [2, 4],
            **_UNITS,
            **_RELU,
            "model.dropout": [0.0, 0.5],
            "model.walks": [5, 10],
            "model.length": [3, 5, 7],
            "model.alpha": [0.1],
        },
        {
            "optimizer.lr": [1e-2],
            "optimizer.weight_decay": [5e-5, 5e-4],
            "model.num_layers": [2, 4],
            **_UNITS,
            **_RELU,
            "model.dropout": [0.0, 0.5],
            "model.walks": [5],
            "model.length": [3, 5],
            "model.alpha": [0.1],
        },
        "around the pathGCN paper's walks on citation graphs; rates chosen here",
    ),
    "sgc": AuthorSpaces(
        {
            "optimizer.lr": [0.2, 0.05, 0.01],
            "optimizer.weight_decay": [5e-6, 1e-5, 5e-5, 1e-4],
            "model.num_layers": [1, 2],
            **_UNITS,
        },
        {
            "optimizer.lr": [0.2, 0.01],
            "optimizer.weight_decay": [5e-6, 1e-4],
            "model.num_layers": [1, 2],
            **_UNITS,
        },
        "around the SGC paper's settings for citation graphs",
    ),
}
# What these methods vary on other tasks, besides what all methods do.
ELSEWHERE: Mapping[str, _Values] = {
    "cheb": {"model.degree": [1, 2, 3]},
    "gprgnn": {"model.alpha": [0.1, 0.5, 0.9]},
    "h2gcn": {"model.act": ["relu"]},
    "pairnorm": {"model.norm": ["pair", "pair-si"]},
    "pathgcn": {"model.length": [3, 5], "model.alpha": [0.1]},
    "sgc": {},
}
