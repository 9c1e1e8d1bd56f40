"""Small spaces around the settings that published rows were measured with, for heterophilic graphs.

The values come from the scripts that Yan et al. (2022) released for the rows that the A-DGN paper
quotes, from the methods' own papers where these have none, and from the A-DGN paper and its
reference code. Each space has 16 configurations or a few less: what is known to matter has two
values, the rest one.
"""

from collections.abc import Mapping
from typing import Any

from adgn.tasks.spaces import SearchSpace, compact_space

# What a method has that says nothing else.
_SHARED: SearchSpace = {
    "optimizer.lr": [0.01, 0.003],
    "optimizer.weight_decay": [5e-5, 5e-3],
    "model.num_layers": [2, 4],
    "model.hidden_channels": [64],
    "model.dropout": [0.0, 0.5],
}
_RELU = {"model.act": ["relu"]}
_OWN: Mapping[str, SearchSpace] = {
    "adgn": {
        "optimizer.weight_decay": [0.01],
        "model.num_layers": [2, 8],
        "model.act": ["tanh"],
        "model.epsilon": [1.0, 0.1],
        "model.gamma": [0.1],
    },
    "gat": {
        "optimizer.lr": [0.005, 0.01],
        "model.num_layers": [2],  # it is the slowest of all
        "model.dropout": [0.0, 0.6],
        "model.heads": [8],
        "model.act": ["elu"],
    },
    "gcn": _RELU,
    "gcnii": {
        **_RELU,
        "optimizer.lr": [0.01],
        "model.alpha": [0.5],
        "model.theta": [0.5],
        "model.act_first": [True],
        "model.shared_weights": [True, False],  # GCNII and GCNII*; one number of both
    },
    "graphsage": _RELU,
    "mlp": {**_RELU, "optimizer.weight_decay": [1e-4, 5e-3], "model.num_layers": [1, 2]},
}
# By data set, on top: the settings that its number was measured with, as (key, value) or with a
# second value to try.
_BY_DATA: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "gcnii": {
        "chameleon": {"num_layers": 4, "theta": 1.5, "alpha": 0.2, "weight_decay": 5e-4},
        "squirrel": {"num_layers": 2, "weight_decay": 1e-3, "dropout": 0.6, "hidden_channels": 16},
        "actor": {"num_layers": 2, "weight_decay": 1e-3, "dropout": 0.0, "hidden_channels": 16},
        "cornell": {"num_layers": 16, "theta": 1.0, "weight_decay": 1e-3},
        "texas": {"num_layers": 32, "theta": 1.5, "weight_decay": 1e-4},
        "wisconsin": {"num_layers": 16, "theta": 1.0, "weight_decay": 5e-4},
    },
    "mlp": {
        "chameleon": {"weight_decay": 1e-8},
        "squirrel": {"dropout": 0.6},
        "actor": {"weight_decay": 1e-3},
    },
}
_OPTIMIZER = ("lr", "weight_decay")
# Methods whose compact spaces have the settings of their published numbers in them, graph by graph,
# or for those without a published number their authors' settings elsewhere. Of PairNorm's depths,
# which are 2 to 64, the deepest is left out.
_COMPACT = ("cheb", "geomgcn", "ggcn", "gprgnn", "h2gcn", "pairnorm", "pathgcn", "sgc")


def has_authors_space(model: str) -> bool:
    """Whether there is such a space for a model."""
    return model in _OWN or model in _COMPACT


def authors_space(task: str, model: str) -> SearchSpace:
    """A small space for a model on a heterophilic graph; on a filtered one, that of the graph.

    Example:
        >>> authors_space("texas", "gcnii")["model.num_layers"]
        [32, 4]
    """
    graph = task.partition("-")[0]  # of squirrel-filtered, squirrel
    if model in _COMPACT:
        return compact_space(graph, model)
    space = {key: list(values) for key, values in {**_SHARED, **_OWN[model]}.items()}
    for name, value in _BY_DATA.get(model, {}).get(graph, {}).items():
        key = f"{'optimizer' if name in _OPTIMIZER else 'model'}.{name}"
        usual = space.get(key, [])
        # The published one first, and one to compare it with where the key had two.
        others = [other for other in usual[::-1] if other != value]
        space[key] = [value, *others[: max(0, len(usual) - 1)]]
    return space
