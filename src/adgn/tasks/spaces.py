"""What model selection tries: the paper's grids, and compact spaces around what they select.

Keys are `model.<argument or option of build_model>`, `optimizer.lr` and
`optimizer.weight_decay`; a grid is the product of the lists. What an experiment fixes for all
models (the optimiser, numbers of epochs, patience) is no part of a space.
"""

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

from adgn.nn import ModelOptions, model_spec
from adgn.tasks.authors import ELSEWHERE, FEW_ROUNDS, HETEROPHILY
from adgn.training.config import ModelConfig
from adgn.training.tasks import task_entry

SearchSpace = dict[str, list[Any]]


class GridSource(NamedTuple):
    """A grid and where its values come from."""

    space: SearchSpace
    source: str


_STEPS: SearchSpace = {"model.epsilon": [1.0, 1e-1, 1e-2, 1e-3]}
_MORE_STEPS: SearchSpace = {"model.epsilon": [1.0, 1e-1, 1e-2, 1e-3, 1e-4]}
_TWO_STEPS: SearchSpace = {"model.epsilon": [1e-1, 1e-2]}
_GCNII: SearchSpace = {"model.alpha": [1.0, 0.1, 0.01]}
_APPNP: SearchSpace = {"model.alpha": [0.1, 0.2]}
_LAYER_NORM: SearchSpace = {"model.norm": ["layer"], "model.residual": [True]}
_TREE_GIN: SearchSpace = {"model.mlp": ["two-layer"], "model.train_eps": [False]}
_MODELS = ["adgn", "appnp", "dagnn", "dgc", "gat", "gcn", "gcnii", "ggnn"]
_MODELS += ["gin", "grand", "graphsage", "mlp"]

# By family: what all models share, and what single ones have besides.
_GRIDS: Mapping[str, tuple[SearchSpace, Mapping[str, SearchSpace]]] = {
    "property": (
        {
            "optimizer.lr": [3e-3],
            "optimizer.weight_decay": [1e-6],
            "model.num_layers": [1, 5, 10, 20],
            "model.hidden_channels": [10, 20, 30],
        },
        {
            "adgn": {**_STEPS, "model.gamma": [1.0, 1e-1, 1e-2, 1e-3]},
            "appnp": _APPNP,
            "dgc": _STEPS,
            "gcnii": _GCNII,
            "grand": _STEPS,
        },
    ),
    "benchmarks": (
        {
            "optimizer.lr": [1e-2, 1e-3, 1e-4],
            "optimizer.weight_decay": [0.1],
            "model.num_layers": [1, 2, 3, 5, 10, 20, 30],
            "model.hidden_channels": [32, 64, 128],
        },
        {
            "adgn": {**_MORE_STEPS, "model.gamma": [1.0, 1e-1, 1e-2, 1e-3, 1e-4]},
            "appnp": _APPNP,
            "dgc": _MORE_STEPS,
            "gcnii": _GCNII,
            "grand": _MORE_STEPS,
        },
    ),
    "heterophily": (
        {
            "optimizer.lr": [1e-1, 1e-2, 1e-4],
            "optimizer.weight_decay": [1e-2],
            "model.num_layers": [8, 16, 32, 64],
            "model.hidden_channels": [128, 256, 512, 1024],
            "model.act": ["tanh", "relu"],
            "model.dropout": [0.0, 0.2, 0.4, 0.6],
        },
        {
            "adgn": {**_TWO_STEPS, "model.gamma": [1e-1, 1e-2]},
            "appnp": _APPNP,
            "dgc": _TWO_STEPS,
            "gcnii": _GCNII,
            "grand": _TWO_STEPS,
        },
    ),
    # Without the number of layers, which the task knows: the trees' depth, for A-DGN one more.
    "trees": (
        {"model.hidden_channels": [32]},
        {
            "adgn": {
                "model.hidden_channels": [32, 86, 128],
                "model.act": ["tanh", "relu"],
                "model.epsilon": [0.1],
                "model.gamma": [0.1],
            },
            "dgc": {"model.epsilon": [0.1]},
            "gat": {"model.act": [None], **_LAYER_NORM, "model.heads": [4]},
            "gcn": {"model.act": ["relu"], **_LAYER_NORM},
            "ggnn": {"model.shared_gru": [False]},
            "gin": {"model.act": ["relu"], **_LAYER_NORM, **_TREE_GIN},
            "grand": {"model.epsilon": [0.1]},
        },
    ),
}
# A reservoir has no optimiser. Radii in units of the inverse of the graph's: classes of nodes are
# told best far above 1, values that depend on distances below or near 1.
_RESERVOIR: SearchSpace = {"model.input_scale": [0.3, 1.0, 3.0]}
_GESN: Mapping[str, SearchSpace] = {
    "property": {
        "model.radius": [0.3, 0.6, 0.9, 1.5, 3.0],
        **_RESERVOIR,
        "model.num_layers": [5, 10, 20],
        "model.hidden_channels": [200],
    },
    "benchmarks": {
        "model.radius": [0.1, 1.0, 5.0, 20.0, 100.0],
        **_RESERVOIR,
        "model.num_layers": [2, 4, 8],
        "model.hidden_channels": [1000],
    },
    "heterophily": {
        "model.radius": [0.1, 5.0, 30.0, 100.0, 300.0],
        **_RESERVOIR,
        "model.num_layers": [1, 2, 4],
        "model.hidden_channels": [1000],
    },
    "trees": {"model.radius": [0.9, 3.0, 10.0], **_RESERVOIR, "model.hidden_channels": [256]},
}
_GESN_SOURCE = "not in the A-DGN paper; radius, input scale and steps as GESN's papers vary them"
_TABLES = {
    "property": "A-DGN paper, table of property-prediction grids",
    "benchmarks": "A-DGN paper, table of graph-benchmark grids",
    "heterophily": "A-DGN paper, table of heterophilic grids",
    "trees": "A-DGN paper, table of Tree-NeighborsMatch grids",
}
_ALON_YAHAV = "Alon and Yahav (2021), whose results the A-DGN paper quotes"


def _source(family: str, model: str) -> str:
    if family == "trees" and model != "adgn":
        quoted = model in ("gat", "gcn", "ggnn", "gin")
        return _ALON_YAHAV if quoted else f"size as in {_ALON_YAHAV}; this model is not among them"
    trained = model == "adgn" if family == "heterophily" else model not in _NOT_TRAINED
    shared = "; the paper did not train this model, so only what its grid says for all"
    return _TABLES[family] + ("" if trained else shared)


_NOT_TRAINED = ("appnp", "dagnn", "ggnn", "mlp")
_REGISTERED: dict[str, dict[str, GridSource]] = {}  # by model, then by family


def register_space(model: str, family: str, space: SearchSpace, source: str = "") -> None:
    """Makes known what `space="paper"` tries for a model on the tasks of a family.

    `space="compact"` takes those of its keys that not all models share.

    Args:
        model: The model.
        family: The family of tasks.
        space: Lists of values by key.
        source: Where the values come from.

    Example:
        >>> from adgn.selection import named_space
        >>> register_space("my-method", "property", {"model.num_layers": [2, 4]}, "my paper")
        >>> paper_spaces("my-method")["property"].source
        'my paper'
    """
    _REGISTERED.setdefault(model, {})[family] = GridSource(copy.deepcopy(space), source)


def paper_spaces(model: str) -> dict[str, GridSource]:
    """The grids of a model by family of tasks; none for a model that has none.

    Example:
        >>> paper_spaces("gcnii")["property"].space["model.alpha"]
        [1.0, 0.1, 0.01]
    """
    return copy.deepcopy(_REGISTERED.get(model, {}))


for _model in _MODELS:
    for _family, (_shared, _own) in _GRIDS.items():
        _values = {**_shared, **_own.get(_model, {})}
        if _model == "ggnn" and _family == "heterophily":
            del _values["model.act"]  # it has no activation to choose
        register_space(_model, _family, _values, _source(_family, _model))
for _family, _values in _GESN.items():
    register_space("gesn", _family, _values, _GESN_SOURCE)

# Methods that came after the paper, or that it names without training them: what all models share,
# and a few values of their own around those of their papers.
_SWAN: SearchSpace = {"model.gamma": [0.1, 0.01], "model.beta": [1.0, 0.1]}
_AFTER: Mapping[str, tuple[SearchSpace, str]] = {
    "swan": ({"model.epsilon": [1.0, 0.1, 0.01], **_SWAN}, "the SWAN paper's grid, thinned out"),
    "phdgn": (
        {"model.epsilon": [1.0, 0.1, 0.01], "model.phi": ["sum", "gcn"]},
        "the PH-DGN paper's grid, thinned out; conservative",
    ),
    "stable-cheb": (
        {"model.epsilon": [1.0, 0.1], "model.degree": [2, 5], "model.gamma": [0.0, 0.1]},
        "chosen here; its paper has no grid for these tasks",
    ),
    "cgnn": ({"model.epsilon": [1.0, 0.1]}, "chosen here; the authors' times are 12 and 14"),
    "gde": ({"model.epsilon": [0.1, 0.01]}, "chosen here around the GDE paper's time of 1"),
    "egnn": (
        {"model.c_min": [0.2, 0.12], "model.beta": [0.1]},
        "the EGNN paper's settings for citation graphs",
    ),
    "pdegcn": (
        {"model.epsilon": [0.5, 0.1], "model.equation": ["parabolic", "hyperbolic", "mixed"]},
        "chosen here around the PDE-GCN paper's settings",
    ),
    "sonar": (
        {"model.epsilon": [1.0, 0.5, 0.1], "model.blocks": [1, 2]},
        "the SONAR paper's grid, thinned out; conservative",
    ),
    "mpssm": (
        {"model.blocks": [1, 2], "model.inputs": ["every", "first"]},
        "chosen here around the MP-SSM paper's settings",
    ),
    "graphcon": (
        {"model.epsilon": [1.0, 0.5, 0.1], "model.damping": [1.0, 0.0]},
        "chosen here around the GraphCON paper's settings",
    ),
}
_FEWER: Mapping[str, SearchSpace] = {
    "trees": {"model.epsilon": [0.1], "model.act": ["tanh", "relu"]}
}


def _with_options(model: str, values: SearchSpace) -> SearchSpace:
    """Those of the values that are sizes, of the optimiser, or of an option that the model has."""
    options = model_spec(model).options.model_fields
    sizes = ("model.num_layers", "model.hidden_channels")
    return {
        key: list(FEW_ROUNDS.get(model, given)) if key == "model.num_layers" else given
        for key, given in values.items()
        if key.startswith("optimizer.") or key in sizes or key.removeprefix("model.") in options
    }


for _model, (_own_values, _where) in _AFTER.items():
    for _family, (_shared, _) in _GRIDS.items():
        _values = _with_options(_model, {**_shared, **_own_values, **_FEWER.get(_family, {})})
        register_space(_model, _family, _values, f"{_where}; sizes: {_TABLES[_family]}")
for _model, _spaces in HETEROPHILY.items():
    for _family, (_shared, _) in _GRIDS.items():
        if _family == "heterophily":
            register_space(_model, _family, _spaces.grid, _spaces.source)
            continue
        _values = _with_options(_model, {**_shared, **ELSEWHERE[_model]})
        register_space(_model, _family, _values, f"chosen here; sizes: {_TABLES[_family]}")

# Methods whose authors' settings for the heterophilic graphs are known, graph by graph: what a grid
# tries is all values that occur; a compact space tries the graph's own and a few around them. Where
# nodes listen is no part of it: an experiment fixes that.


def _ggcn(layers: int, decay: float, size: int, dropout: float, share: float) -> dict[str, Any]:
    own = {"model.hidden_channels": size, "model.dropout": dropout, "model.decay": share}
    optimizer = {"optimizer.lr": 0.01, "optimizer.weight_decay": decay}
    network = {"model.readout": "none", "model.first_dropout": "features"}
    return {"model.num_layers": layers, **network, **optimizer, **own}


def _geomgcn(size: int, decay: float) -> dict[str, Any]:
    fixed = {"model.num_layers": 2, "model.dropout": 0.5, "optimizer.lr": 0.05}
    return {"model.hidden_channels": size, "optimizer.weight_decay": decay, **fixed}


_AUTHORS: Mapping[str, tuple[Mapping[str, dict[str, Any]], SearchSpace, SearchSpace, str]] = {
    "ggcn": (
        {
            "chameleon": _ggcn(5, 1e-2, 32, 0.3, 0.8),
            "squirrel": _ggcn(2, 4e-3, 32, 0.5, 1.0),
            "actor": _ggcn(4, 7e-3, 32, 0.0, 1.2),
            "cornell": _ggcn(6, 1e-3, 16, 0.5, 0.7),
            "texas": _ggcn(2, 1e-3, 16, 0.4, 1.0),
            "wisconsin": _ggcn(5, 6e-4, 16, 0.0, 1.0),
        },
        {"model.num_layers": [2, 5], "model.dropout": [0.0, 0.5]},
        {"model.decay": [1.0, 0.7]},
        "the settings of the GGCN authors' code",
    ),
    "geomgcn": (
        {
            **dict.fromkeys(("chameleon", "squirrel"), _geomgcn(48, 5e-6)),
            "actor": _geomgcn(32, 5e-6),
            **dict.fromkeys(("cornell", "texas", "wisconsin"), _geomgcn(32, 5e-5)),
        },
        {"optimizer.lr": [0.01], "optimizer.weight_decay": [5e-4], "model.dropout": [0.0]},
        {},
        "the settings of the Geom-GCN authors' code",
    ),
}
for _model, (_settings, _near, _elsewhere, _where) in _AUTHORS.items():
    for _family, (_shared, _) in _GRIDS.items():
        _values = {key: v for key, v in _shared.items() if key != "model.act"} | _elsewhere
        if _family == "heterophily":
            _every = [key for setting in _settings.values() for key in setting]
            _values = {
                key: sorted({setting[key] for setting in _settings.values()}) for key in _every
            }
        _from = _where if _family == "heterophily" else f"chosen here; sizes: {_TABLES[_family]}"
        register_space(_model, _family, _values, _from)

# For tasks of a user's own: nothing is known but that these matter.
_USUAL: SearchSpace = {
    "optimizer.lr": [1e-2, 3e-3, 1e-3],
    "model.num_layers": [2, 5, 10],
    "model.hidden_channels": [32],
}
# Options that a model has in its grids, thinned out; of others the grid's values stay.
_THINNED: SearchSpace = {
    "model.alpha": [0.1, 0.5],
    "model.epsilon": [1.0, 0.1],
    "model.gamma": [0.1, 0.01],
}
_SHARED_OPTIONS = {
    f"model.{key}" for key in (*ModelConfig.model_fields, *ModelOptions.model_fields)
}


def compact_space(task: str, model: str) -> SearchSpace:
    """A space of a few dozen configurations for a model and a task, whoever registered them.

    Example:
        >>> compact_space("sssp", "adgn")["model.epsilon"]
        [1.0, 0.1]
    """
    entry, spec, grids = task_entry(task), model_spec(model), paper_spaces(model)
    graph = task.partition("-")[0]  # of a repaired graph the one that it was
    if entry.family == "heterophily" and model in HETEROPHILY:
        return HETEROPHILY[model].compact_for(task)
    if spec.options.model_fields["readout"].default == "ridge":
        # Nothing is trained: no learning rates, and sizes of its own.
        grid = grids[entry.family if entry.family in grids else "benchmarks"].space
        return {key: values[::2] for key, values in grid.items()}
    if (
        entry.family == "heterophily"
        and graph in (known := _AUTHORS.get(model, ({}, {}, {}, "")))[0]
    ):
        return {
            key: list(dict.fromkeys([value, *known[1].get(key, [])]))
            for key, value in known[0][graph].items()
        }
    given = entry.compact or _USUAL
    shared = {
        key: list(values)
        for key, values in given.items()
        if not key.startswith("model.") or key in _SHARED_OPTIONS
    }
    if "model.num_layers" in shared and model in FEW_ROUNDS:
        shared["model.num_layers"] = list(FEW_ROUNDS[model])
    if entry.family in grids:
        grid = {k: values for k, values in grids[entry.family].space.items() if k not in shared}
    else:  # of the paper's tasks property prediction is the nearest
        grid = grids["property"].space if "property" in grids else {}
        grid = {key: values for key, values in grid.items() if key in _THINNED}
    fewer = {**_THINNED, **given}
    own = {
        key: list(fewer[key]) if len(values) > 1 and key in fewer else values
        for key, values in grid.items()
    }
    rest = {
        key: list(values)
        for key, values in given.items()
        if key not in shared and key.removeprefix("model.") in spec.options.model_fields
    }
    return {**shared, **own, **{key: values for key, values in rest.items() if key not in own}}
