"""The gradient of a loss in the weights of every layer: does every layer learn?"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from adgn.analysis.gradients import norm_ratio
from adgn.graph import Adjacency
from adgn.nn import GraphNetwork


@dataclass(frozen=True, eq=False)
class WeightGradients:
    r"""$\|\partial\mathcal{L} / \partial\theta_\ell\|$ for the weights of each layer $\ell$.

    Attributes:
        norms: `[L]`, in the order of the layers.
        loss: The value of the loss.
    """

    norms: Tensor
    loss: float

    @property
    def ratio(self) -> float:
        """The norm at the first layer over the last one's: far below 1 the first learns nothing.

        It is 0 where the first layer has no gradient, also if the last one has none either, and
        infinite where the last layer alone has none.
        """
        return norm_ratio(self.norms)


def weight_gradients(
    model: GraphNetwork,
    x: Tensor,
    edge_index: Adjacency,
    loss: Callable[[Tensor], Tensor],
    *,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
) -> WeightGradients:
    r"""The norm of a loss's gradient in the weights of each layer.

    $$
    g(\ell) = \left\| \frac{\partial \mathcal{L}}{\partial \theta_\ell} \right\|,
    \qquad \theta_\ell = (\mathbf{W}_\ell, \mathbf{V}_\ell, \mathbf{b}_\ell)
    $$

    It is what an optimiser sees: unlike the gradient in the states it counts only what a layer's
    input and the way to the output both let through.

    Args:
        model: A network with one set of weights per layer.
        x: Features, `[N, in_channels]`.
        edge_index: The graph.
        loss: Maps the outputs to a number.
        edge_weight: `[E]`, optional.
        batch: `[N]`; needed by a model at graph level.

    Raises:
        ValueError: The layers share their weights, or are not in `model.propagation.layers`.

    Example:
        >>> import torch
        >>> from adgn.nn import ADGN
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> model = ADGN(4, 8, 1, num_layers=20, weight_sharing=False)
        >>> weight_gradients(model, torch.ones(3, 4), path, torch.sum).norms.shape
        torch.Size([20])
    """
    layers = getattr(model.propagation, "layers", None)
    depth = getattr(model.propagation, "num_layers", None)
    if not isinstance(layers, torch.nn.ModuleList) or depth not in (None, len(layers)):
        raise ValueError(
            f"{type(model.propagation).__name__} does not have one set of weights per layer; build "
            "the model with weight_sharing=False"
        )
    parameters = [[p for p in layer.parameters() if p.requires_grad] for layer in layers]
    if not all(parameters):
        raise ValueError("a layer has no trainable weights; build the model with trainable layers")
    value = loss(model(x, edge_index, edge_weight, batch))
    flat = [parameter for group in parameters for parameter in group]
    gradients = iter(torch.autograd.grad(value, flat, allow_unused=True, materialize_grads=True))
    norms = [
        torch.stack([next(gradients).double().norm() for _ in group]).norm() for group in parameters
    ]
    return WeightGradients(torch.stack(norms), float(value.detach()))
