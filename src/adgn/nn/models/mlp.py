"""MLP: what the features alone can do, without the graph."""

from typing import Any

from torch import Tensor, nn

from adgn.graph import Adjacency
from adgn.nn.models.baseline import Stack, StackOptions
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class MLPOptions(StackOptions):
    """The options of the MLP."""


class MLPPropagation(Stack):
    """Linear layers that are told nothing about the graph."""

    def prepare(
        self,
        x: Tensor,
        edge_index: Adjacency,
        edge_weight: Tensor | None,
        edge_attr: Tensor | None,
    ) -> dict[str, Any]:
        """Nothing."""
        return {}


@register_model(
    "mlp",
    title="MLP",
    paper="https://doi.org/10.1038/323533a0",
    rule=r"\mathbf{X}^\ell = \sigma(\mathbf{X}^{\ell-1} \mathbf{W}_\ell^\top + \mathbf{b}_\ell)",
    hops_per_layer=0,
    memory="nd",
    time="nd^2",
    options=MLPOptions,
    note="It does not look at the graph or at edge weights.",
)
class MLP(Model):
    """Multi-layer perceptron on each node."""

    @staticmethod
    def build_propagation(channels: int, num_layers: int, options: MLPOptions) -> nn.Module:
        """The linear layers in a row."""
        layers: list[nn.Module] = [nn.Linear(channels, channels) for _ in range(num_layers)]
        return MLPPropagation(layers, channels, options)
