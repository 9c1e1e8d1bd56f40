"""The paper's grids of settings, as far as all models share them.

Keys are `model.<argument or option of build_model>`, `optimizer.lr` and
`optimizer.weight_decay`; a grid is the product of the lists. What an experiment fixes for all
models (the optimiser, numbers of epochs, patience) is no part of a space.
"""

from adgn.nn.registry import SearchSpace

PROPERTY: SearchSpace = {
    "optimizer.lr": [3e-3],
    "optimizer.weight_decay": [1e-6],
    "model.num_layers": [1, 5, 10, 20],
    "model.hidden_channels": [10, 20, 30],
}
BENCHMARKS: SearchSpace = {
    "optimizer.lr": [1e-2, 1e-3, 1e-4],
    "optimizer.weight_decay": [0.1],
    "model.num_layers": [1, 2, 3, 5, 10, 20, 30],
    "model.hidden_channels": [32, 64, 128],
}
HETEROPHILY: SearchSpace = {
    "optimizer.lr": [1e-1, 1e-2, 1e-4],
    "optimizer.weight_decay": [1e-2],
    "model.num_layers": [8, 16, 32, 64],
    "model.hidden_channels": [128, 256, 512, 1024],
    "model.act": ["tanh", "relu"],
    "model.dropout": [0.0, 0.2, 0.4, 0.6],
}
# Without the number of layers, which the task knows: the trees' depth, for A-DGN one more.
TREES: SearchSpace = {"model.hidden_channels": [32]}

PROPERTY_TABLE = "A-DGN paper, table of property-prediction grids"
BENCHMARKS_TABLE = "A-DGN paper, table of graph-benchmark grids"
HETEROPHILY_TABLE = "A-DGN paper, table of heterophilic grids"
TREES_TABLE = "A-DGN paper, table of Tree-NeighborsMatch grids"
ALON_YAHAV = "Alon and Yahav (2021), whose results the A-DGN paper quotes"
_SHARED = "{table}; the paper did not train this model, so only what its grid says for all"


def property_grid(
    own: SearchSpace | None = None, *, trained: bool = True
) -> tuple[SearchSpace, str]:
    """The grid for property prediction with a model's own settings, and its source."""
    return {**PROPERTY, **(own or {})}, _source(PROPERTY_TABLE, trained)


def benchmark_grid(
    own: SearchSpace | None = None, *, trained: bool = True
) -> tuple[SearchSpace, str]:
    """The grid for the 20/30 node benchmarks with a model's own settings, and its source."""
    return {**BENCHMARKS, **(own or {})}, _source(BENCHMARKS_TABLE, trained)


def heterophily_grid(
    own: SearchSpace | None = None, *, act: bool = True
) -> tuple[SearchSpace, str]:
    """The heterophilic grid for a baseline: the paper quotes baselines and trains A-DGN alone."""
    shared = {key: values for key, values in HETEROPHILY.items() if act or key != "model.act"}
    return {**shared, **(own or {})}, _source(HETEROPHILY_TABLE, False)


def tree_grid(own: SearchSpace | None = None, *, quoted: bool = False) -> tuple[SearchSpace, str]:
    """The settings for Tree-NeighborsMatch: those of the quoted results, or just their size."""
    source = ALON_YAHAV if quoted else f"size as in {ALON_YAHAV}; this model is not among them"
    return {**TREES, **(own or {})}, source


def _source(table: str, trained: bool) -> str:
    return table if trained else _SHARED.format(table=table)
