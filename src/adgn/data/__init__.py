"""Data sets of the paper, with the protocols that make numbers comparable, and users' graphs."""

from typing import TYPE_CHECKING

from adgn._util.registry import lazy_exports

if TYPE_CHECKING:  # imported on first use: tables of names need no torch
    from adgn.data.catalogue import CATALOGUE, DatasetInfo, FileState, find_dataset, prepare, verify
    from adgn.data.components import largest_component
    from adgn.data.node_datasets import NODE_DATASETS, NodeDataset
    from adgn.data.nodes import load
    from adgn.data.own.example import ExampleTables, example_tables
    from adgn.data.own.graph import Graph
    from adgn.data.own.preprocessing import Features, Preprocessing
    from adgn.data.own.targets import TargetEncoder
    from adgn.data.packed import PackedDataset, PackedGraphs
    from adgn.data.property import GraphPropertyDataset, constant_predictor_score
    from adgn.data.property_targets import (
        PUBLISHED_COLUMNS,
        TARGETS,
        ConstantScore,
        PropertySettings,
        PropertyTarget,
        find_target,
    )
    from adgn.data.rewiring import transformed
    from adgn.data.root import (
        DamagedFileError,
        DataError,
        GraphInputError,
        MissingFileError,
        data_root,
    )
    from adgn.data.splits import (
        PAPER_DATA_SEEDS,
        NodeSplit,
        fixed_split,
        num_fixed_splits,
        split_per_class,
    )
    from adgn.data.transfer import TOPOLOGIES, GraphTransfer
    from adgn.data.trees import TreeNeighborsMatch
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = [
    "CATALOGUE", "NODE_DATASETS", "PAPER_DATA_SEEDS", "PUBLISHED_COLUMNS", "TARGETS",
    "TOPOLOGIES", "ConstantScore", "DamagedFileError", "DataError", "DatasetInfo",
    "ExampleTables", "Features", "FileState", "Graph", "GraphInputError", "GraphPropertyDataset",
    "GraphTransfer", "MissingFileError", "NodeDataset", "NodeSplit", "PackedDataset",
    "PackedGraphs", "Preprocessing", "PropertySettings", "PropertyTarget", "TargetEncoder",
    "TreeNeighborsMatch", "constant_predictor_score", "data_root", "example_tables",
    "find_dataset", "find_target", "fixed_split", "largest_component", "load",
    "num_fixed_splits", "prepare", "split_per_class", "transformed", "verify",
]  # fmt: skip
