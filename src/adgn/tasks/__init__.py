"""Tasks: data, objective, defaults, seeds and splits, search spaces, published values, scores."""

from typing import TYPE_CHECKING

from adgn._util.registry import lazy_exports

# In the order in which tasks are listed; importing a file registers its tasks.
# isort: split
from adgn.tasks.properties import PropertyConfig

# isort: split
from adgn.tasks.nodes import NodeConfig, constant_scores

# isort: split
from adgn.tasks.trees import TreeConfig, normalised_accuracy, tree_layers

# isort: split
from adgn.tasks.transfer import TransferConfig

if TYPE_CHECKING:  # imported on first use: tables of names need no torch
    from adgn.tasks.published import published_row, published_tables, published_value
    from adgn.tasks.spaces import SearchSpace, compact_space, paper_spaces, register_space
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = [
    "NodeConfig", "PropertyConfig", "SearchSpace", "TransferConfig", "TreeConfig",
    "compact_space", "constant_scores", "normalised_accuracy", "paper_spaces", "published_row",
    "published_tables", "published_value", "register_space", "tree_layers",
]  # fmt: skip
