"""How a module is called with a batch."""

import inspect
from collections.abc import Callable

from torch import Tensor, nn

from adgn.nn import GraphNetwork
from adgn.training.batches import LabelledBatch
from adgn.training.readout import GRAPH_ARGUMENTS, graph_arguments

Forward = Callable[[nn.Module, LabelledBatch], Tensor]


def forward_of(model: nn.Module) -> Forward:
    """How to call a model: with the parts of a batch that its `forward` has a name for."""
    parameters = inspect.signature(model.forward).parameters
    taken = [name for name in GRAPH_ARGUMENTS if name in parameters]
    if takes_nodes(model):
        taken.append("nodes")

    def forward(module: nn.Module, batch: LabelledBatch) -> Tensor:
        output: Tensor = module(batch.x, batch.graph, **graph_arguments(batch, taken))
        return output

    return forward


def takes_nodes(model: nn.Module) -> bool:
    """Whether a model can give the outputs of some nodes alone."""
    networks = isinstance(model, GraphNetwork) and model.level == "node"
    return networks and "nodes" in inspect.signature(model.forward).parameters
