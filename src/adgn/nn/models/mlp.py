"""MLP: what the features alone can do, without the graph."""

from torch import nn

from adgn.nn.models.baseline import Stack, StackOptions
from adgn.nn.network import Model
from adgn.nn.registry import register_model


@register_model(
    "mlp",
    title="MLP",
    paper="https://doi.org/10.1038/323533a0",
    rule=r"\mathbf{X}^\ell = \sigma(\mathbf{X}^{\ell-1} \mathbf{W}_\ell^\top + \mathbf{b}_\ell)",
    hops_per_layer=0,
    memory="nd",
    time="nd^2",
    options=StackOptions,
    note="It does not look at the graph or at edge weights.",
)
class MLP(Model):
    """Multi-layer perceptron on each node."""

    @staticmethod
    def build_propagation(channels: int, num_layers: int, options: StackOptions) -> nn.Module:
        """The linear layers in a row."""
        layers = [nn.Linear(channels, channels) for _ in range(num_layers)]
        return Stack(layers, channels, options)
