"""Compact spaces: a few dozen configurations around those that tend to be selected."""

from collections.abc import Mapping

from adgn.nn.registry import FAMILIES, ModelSpec, SearchSpace

__all__ = ["compact_space"]

# What every model is given. The size is one of the middle of the paper's grid, the depth spans it.
_SHARED: Mapping[str, SearchSpace] = {
    "property": {
        "optimizer.lr": [3e-3],
        "optimizer.weight_decay": [1e-6],
        "model.num_layers": [5, 10, 20],
        "model.hidden_channels": [30],
    },
    "benchmarks": {
        "optimizer.lr": [1e-2, 1e-3],
        "optimizer.weight_decay": [0.1],
        "model.num_layers": [2, 5, 10],
        "model.hidden_channels": [64],
    },
    "heterophily": {
        "optimizer.lr": [1e-2, 3e-3],
        "optimizer.weight_decay": [1e-2],
        "model.num_layers": [2, 8],
        "model.hidden_channels": [64],
        "model.dropout": [0.0, 0.5],
    },
    "trees": {"model.hidden_channels": [32, 64]},
    "transfer": {
        "optimizer.lr": [3e-3, 1e-2],
        "model.hidden_channels": [16, 32],
    },
}
# For tasks of a user's own: nothing is known but that these matter.
_OTHERS: SearchSpace = {
    "optimizer.lr": [1e-2, 3e-3, 1e-3],
    "model.num_layers": [2, 5, 10],
    "model.hidden_channels": [32],
}
# Options that a model has in its grids, thinned out; of others the grid's values stay.
_THINNED: Mapping[str, list[object]] = {
    "model.alpha": [0.1, 0.5],
    "model.epsilon": [1.0, 0.1],
    "model.gamma": [0.1, 0.01],
}
# On small graphs dropout, depth and step size decide; what matters least has one value.
_THINNED_FURTHER: Mapping[str, Mapping[str, list[object]]] = {
    "heterophily": {"model.act": ["tanh"], "model.gamma": [0.1]},
}


def compact_space(family: str, spec: ModelSpec) -> SearchSpace:
    """A space of a few dozen configurations for a model and a family of tasks.

    A model that was registered without search spaces has those settings that all models share.

    Example:
        >>> from adgn.nn import model_spec
        >>> compact_space("property", model_spec("adgn"))["model.epsilon"]
        [1.0, 0.1]
    """
    shared = _SHARED.get(family, _OTHERS)
    if family in FAMILIES:
        paper = spec.search_spaces.get(family, {})
        own = {key: values for key, values in paper.items() if key not in shared}
    else:  # of the paper's tasks property prediction is the nearest
        paper = spec.search_spaces.get("property", {})
        own = {key: values for key, values in paper.items() if key in _THINNED}
    fewer = {**_THINNED, **_THINNED_FURTHER.get(family, {})}
    thinned = {
        key: list(fewer[key]) if len(values) > 1 and key in fewer else list(values)
        for key, values in own.items()
    }
    return {**{key: list(values) for key, values in shared.items()}, **thinned}
