"""The paper's tables and figures as data. A new one is an `Experiment` here, and budgets."""

from collections.abc import Mapping
from typing import Any

from adgn._util.suggestions import unknown_name
from adgn.data import TARGETS
from adgn.experiments.beyond import BEYOND
from adgn.experiments.definition import Column, Experiment, Metric, Row
from adgn.experiments.heterophily import DEFECTS, HETEROPHILIC, HETEROPHILY
from adgn.experiments.parts import (
    ACCURACY,
    BATCH_MEAN,
    LOG_ERROR,
    MISLABELLED,
    NODE_ADGN,
    PROPERTIES,
    adgn_row,
    baselines,
    node_columns,
)
from adgn.experiments.records import Published
from adgn.selection import named_space
from adgn.selection.spaces import nested
from adgn.tasks.published import published_tables
from adgn.tasks.trees import tree_layers
from adgn.training import TrainConfig

SECONDS = Metric(name="seconds", title="seconds per epoch", unit="s", split="train")
TREES = "tree-neighbors-match"


def _randomised(phi: str, *values: tuple[float, float]) -> Row:
    """A row whose published values are comments in the paper's LaTeX source."""
    key, gcn = ("adgn-random-gcn", " (GCN)") if phi == "gcn" else ("adgn-random", "")
    row = adgn_row(
        key, f"A-DGN randomised{gcn}", phi=phi, weight_sharing=True, train_recurrent=False
    )
    columns = {"diameter": "Diameter", "laplacian": "SSSP", "sssp": "Eccentricity"}
    quotes = {
        target: Published(mean=mean, std=std, row=f"Our fix{gcn}", column=column)
        for (target, column), (mean, std) in zip(columns.items(), values, strict=True)
    }
    return row.model_copy(update={"quotes": quotes})


def _solved(phi: str) -> Row:
    """A randomised row whose encoder is random too, and whose readout is a ridge regression."""
    key, gcn = ("adgn-ridge-gcn", " (GCN)") if phi == "gcn" else ("adgn-ridge", "")
    options = {"weight_sharing": True, "train_recurrent": False, "readout": "ridge"}
    row = adgn_row(key, f"A-DGN ridge{gcn}", phi=phi, **options)
    notes = (
        "Encoder and layers stay as initialised; the readout is a ridge regression, its penalty "
        "chosen on the validation graphs. There are no epochs. The paper has no such row.",
    )
    return row.model_copy(update={"quotes": {}, "notes": notes})


def _published_time(row: Row, column: Column, config: TrainConfig) -> Published | None:
    title = TARGETS[column.task].published_as
    if title is None:
        return None
    table = published_tables()["graph_property_prediction_seconds_per_epoch"]["rows"]
    return Published(**table[row.title][title], row=row.title, column=title)


def _over_depth(datasets: tuple[Column, ...], *layers: int) -> tuple[Column, ...]:
    return tuple(
        Column(
            key=f"{dataset.key}-{count}",
            title=f"{dataset.title}, {count} layers",
            task=dataset.task,
            settings={"model": {"num_layers": count}},
            layers=count,
            group=dataset.key,
        )
        for dataset in datasets
        for count in layers
    )


def _tree_settings(row: Row, column: Column) -> dict[str, Any]:
    """Baselines as Alon and Yahav had them; A-DGN by the task."""
    if row.model == "adgn":
        return {}
    space = named_space("paper", TREES, row.model)
    settings = nested({key: values[0] for key, values in space.items()})
    settings["model"]["num_layers"] = tree_layers(row.model, column.settings["task"]["radius"])
    return settings


PROPERTY_ROWS = (
    *baselines("gcn", "gat", "graphsage", "gin", "gcnii", "dgc", "grand"),
    adgn_row("adgn-ws", "A-DGN ws", phi="sum", weight_sharing=True),
    adgn_row("adgn-ldw", "A-DGN ldw", phi="sum", weight_sharing=False),
    adgn_row("adgn-ws-gcn", "A-DGN ws (GCN)", phi="gcn", weight_sharing=True),
    adgn_row("adgn-ldw-gcn", "A-DGN ldw (GCN)", phi="gcn", weight_sharing=False),
)
NODE_ROWS = (*baselines("gcn", "gat", "graphsage", "gin", "gcnii", "dgc", "grand"), *NODE_ADGN)

# In single trainings by the protocol A-DGN stays far behind its published values on Photo and
# Computers. This row departs from it, so that nothing published is compared with the row.
REGULARISED = adgn_row(
    "adgn-gcn-regularised", "A-DGN regularised", phi="gcn", epsilon=1.0, gamma=0.1
).model_copy(
    update={
        "quotes": {},
        "space": {
            "model.dropout": [0.5, 0.8],
            "model.first_hops": [0, 1, 2],
            "model.hidden_channels": [128],
            "model.num_layers": [2, 5],
            "optimizer.lr": [0.003, 0.001],
        },
        "notes": (
            "Dropout of 0.5 or 0.8 on the first and last states, and none to two hops of GCN's "
            "operator between the encoder and the first layer, which the paper's protocol does not "
            "have; 2 or 5 layers, learning rate 0.003 or 0.001. 128 units, ε = 1 and γ = 0.1 are "
            "not searched: they come from single trainings on these data sets.",
        ),
    }
)
SHARED_BY_DEPTHS = (
    "With the budget laptop all depths share the settings, ε too, that were selected for one of "
    "them."
)
NODE_GRAPHS = node_columns("pubmed", "cs", "physics", "computers", "photo")

_ALL = (
    Experiment(
        name="property",
        title="Graph property prediction",
        summary="A property of each node or graph that depends on distant nodes, on random graphs "
        "of 25 to 34 nodes: log10 of the mean squared error on the test graphs.",
        kind="scores",
        metric=LOG_ERROR,
        rows=(
            *PROPERTY_ROWS,
            _randomised("sum", (0.1243, 0.0626), (-1.2731, 0.1622), (0.8061, 0.01877)),
            _randomised("gcn", (0.5549, 0.2156), (-0.9510, 0.0511), (0.7649, 0.0108)),
            _solved("sum"),
            _solved("gcn"),
        ),
        columns=PROPERTIES,
        notes=(
            MISLABELLED,
            BATCH_MEAN,
            "The published values of the randomised rows stand in the paper's LaTeX source as "
            "comments.",
        ),
    ),
    Experiment(
        name="property-time",
        title="Time per epoch of graph property prediction",
        summary="Seconds per epoch (5120 train graphs in batches of 512, and the validation score) "
        "with 20 layers of 30 units.",
        kind="seconds",
        metric=SECONDS,
        rows=PROPERTY_ROWS,
        columns=PROPERTIES,
        notes=(
            "Measured on the processor with all cores, one cell after the other; a cell's notes "
            "have the number of threads and, where it was recorded, the load before. Published "
            "values are from an A100 GPU and the authors' code.",
            MISLABELLED,
        ),
        published=_published_time,
        settings_of=lambda row, column: {"model": {"num_layers": 20, "hidden_channels": 30}},
    ),
    Experiment(
        name="benchmarks",
        title="Graph benchmarks",
        summary="The class of a node from 20 train and 30 validation nodes per class: test "
        "accuracy, five splits times five initialisations.",
        kind="scores",
        metric=ACCURACY,
        rows=(*NODE_ROWS, REGULARISED, *baselines("dagnn")),
        columns=NODE_GRAPHS,
        notes=(
            "Mean over initialisations within each split, then mean and standard deviation over "
            "splits.",
            "DAGNN is not in the paper's table.",
        ),
    ),
    HETEROPHILY,
    Experiment(
        name="trees",
        title="Tree-NeighborsMatch",
        summary="The root of a binary tree must tell the value of the leaf that it asks for; the "
        "deeper the tree, the more must pass through one state. Train accuracy, as in the paper.",
        kind="scores",
        metric=ACCURACY.model_copy(update={"title": "train accuracy", "split": "train"}),
        rows=(*baselines("ggnn", "gat", "gcn", "gin"), adgn_row("adgn", "A-DGN")),
        columns=tuple(
            Column(
                key=f"radius-{radius}",
                title=f"radius {radius}",
                task=TREES,
                settings={"task": {"radius": radius}},
            )
            for radius in range(2, 9)
        ),
        notes=(
            "The paper quotes the rows other than A-DGN from Alon and Yahav (2021).",
            "A-DGN has one set of weights for all layers, the others one per layer; the normalised "
            "accuracy beside it accounts for that.",
        ),
        settings_of=_tree_settings,
    ),
    Experiment(
        name="depth",
        title="Accuracy over depth",
        summary="Test accuracy on the five graph benchmarks with 1 to 30 layers.",
        kind="depth",
        metric=ACCURACY,
        rows=(*NODE_ROWS, REGULARISED),
        columns=_over_depth(NODE_GRAPHS, 1, 2, 3, 5, 10, 20, 30),
        notes=(
            "The paper has a figure of this, and no numbers.",
            "The paper says that A-DGN maintains or improves its accuracy as the number of layers "
            "increases, up to 30, that all baselines have good scores with one or two layers only, "
            f"and that most of them lose much with more. {SHARED_BY_DEPTHS}",
        ),
        published=lambda row, column, config: None,
        settings_from="benchmarks",
    ),
    Experiment(
        name="depth-heterophily",
        title="Accuracy over depth on heterophilic graphs",
        summary="Test accuracy of A-DGN on the six heterophilic graphs with 2 to 64 layers.",
        kind="depth",
        metric=ACCURACY,
        rows=NODE_ADGN,
        columns=_over_depth(HETEROPHILIC, 2, 4, 8, 16, 32, 64),
        notes=(
            "The paper has a figure of this, and no numbers; the numbers of layers are those of "
            "its reference implementation.",
            "The paper says that A-DGN maintains or improves its accuracy as the number of layers "
            f"increases, up to 64. {SHARED_BY_DEPTHS}",
            *DEFECTS,
        ),
        published=lambda row, column, config: None,
        settings_from="heterophily",
    ),
    BEYOND,
)
EXPERIMENTS: Mapping[str, Experiment] = {experiment.name: experiment for experiment in _ALL}


def find_experiment(name: str) -> Experiment:
    """The experiment of this name."""
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
