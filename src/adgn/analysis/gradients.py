"""The gradient of a loss at every layer, in its states and in its weights."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from adgn.analysis.states import first_states, measuring, propagation_of, states_from
from adgn.graph import Adjacency
from adgn.nn import GraphNetwork


@dataclass(frozen=True, eq=False)
class GradientNorms:
    r"""$\|\partial\mathcal{L} / \partial\mathbf{X}(\ell)\|_F$ for $\ell = 0, \dots, L$.

    Attributes:
        norms: `[L + 1]`, in the order of the layers.
        loss: The value of the loss.
    """

    norms: Tensor
    loss: float

    @property
    def ratio(self) -> float:
        """The norm at the first states over that at the last; 0 where nothing arrives there."""
        return float(self.norms[0] / self.norms[-1]) if float(self.norms[0]) != 0 else 0.0


class WeightGradients(GradientNorms):
    r"""$\|\partial\mathcal{L} / \partial\theta_\ell\|$ for the weights of each layer $\ell$.

    `norms` is `[L]`. The `ratio` is far below 1 where the first layer learns nothing, and infinite
    where the last layer alone has no gradient.
    """


def gradient_norms(
    model: nn.Module,
    x: Tensor,
    edge_index: Adjacency,
    loss: Callable[[Tensor], Tensor] | None = None,
    *,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
) -> GradientNorms:
    r"""The norm of a loss's gradient in the states of each layer.

    $$
    g(\ell) = \left\| \frac{\partial \mathcal{L}}{\partial \mathbf{X}(\ell)} \right\|_F
    $$

    Args:
        model: A `GraphNetwork`, or a propagation (whose last states are then the outputs).
        x: Features, `[N, in_channels]`.
        edge_index: The graph.
        loss: Maps the outputs to a number; by default half their mean square.
        edge_weight: `[E]`, optional.
        batch: `[N]`; needed by a model at graph level.

    Example:
        >>> from adgn.nn import ADGN
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> result = gradient_norms(ADGN(4, 8, 1, num_layers=20), torch.ones(3, 4), path)
        >>> result.norms.shape, 0.2 < result.ratio < 10
        (torch.Size([21]), True)
    """
    loss = half_mean_square if loss is None else loss
    with measuring(model):
        start = first_states(model, x).requires_grad_()
        states = states_from(propagation_of(model), start, edge_index, edge_weight)
        output = model.read(states[-1], batch) if isinstance(model, GraphNetwork) else states[-1]
        value = loss(output)
        if not isinstance(value, Tensor) or value.numel() != 1:
            got = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(f"loss returned {got}; it must return a tensor with one number")
        gradients = torch.autograd.grad(
            value.sum(), states, allow_unused=True, materialize_grads=True
        )
    norms = torch.stack([gradient.double().norm() for gradient in gradients])
    return GradientNorms(norms, float(value.detach()))


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
    g(\ell) = \left\| \frac{\partial \mathcal{L}}{\partial \theta_\ell} \right\|, \quad
    \theta_\ell = (\mathbf{W}_\ell, \mathbf{V}_\ell, \mathbf{b}_\ell)
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

    Example:
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


def half_mean_square(output: Tensor) -> Tensor:
    """Half the mean of the squared outputs."""
    return output.square().mean() / 2
