"""DAGNN: propagate without weights, then weigh the depths for each node."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from adgn.graph import GraphOperator
from adgn.nn.models.diffusion import Diffusion, PropagationOptions
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class DAGNNPropagation(Diffusion):
    """The activation, the depths, and how much of each a node keeps."""

    def __init__(self, channels: int, num_layers: int, options: PropagationOptions) -> None:
        super().__init__(num_layers, "gcn", options.act, options.direction)
        self.score = nn.Linear(channels, 1)

    def steps(self, x: Tensor, operator: GraphOperator) -> Iterator[Tensor]:
        """The states at each depth; the last step gives all depths, weighed."""
        x = self.activate(x)
        kept = torch.sigmoid(self.score(x)) * x
        for step in range(self.num_layers):
            x = operator @ x
            kept = kept + torch.sigmoid(self.score(x)) * x
            yield x if step + 1 < self.num_layers else kept


@register_model(
    "dagnn",
    title="DAGNN",
    paper="https://arxiv.org/abs/2007.09296",
    rule=r"\mathbf{x}_u^L = \sum_{\ell=0}^{L} \mathrm{sigmoid}(\mathbf{s}^\top "
    r"\mathbf{h}_u^\ell + c)\, "
    r"\mathbf{h}_u^\ell,\quad \mathbf{H}^\ell = \hat{\mathbf{A}}^\ell \sigma(\mathbf{X}^0)",
    memory="nd",
    time="nd + md",
    options=PropagationOptions,
    note="The scores are read from the hidden states, and the readout comes after; the DAGNN paper "
    "scores class predictions.",
)
class DAGNN(Model):
    """Deep adaptive graph network."""

    build_propagation = DAGNNPropagation
