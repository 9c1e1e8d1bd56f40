"""The vector field of an anti-symmetric layer: the right-hand side that all integrators step."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from adgn.nn.resolve import Activation


@dataclass(frozen=True, eq=False)
class VectorField:
    r"""$F(\mathbf{X}) = \sigma(\mathbf{X} \mathbf{M}^\top + \Phi(\mathbf{X}) + \mathbf{b})$, the
    right-hand side of $\dot{\mathbf{X}} = F(\mathbf{X})$ on one graph.

    Attributes:
        w_self: $\mathbf{M} = \mathbf{W} - \mathbf{W}^\top - \gamma \mathbf{I}$, `[d, d]`.
        phi: The aggregation $\Phi$ on this graph, from states to states.
        bias: $\mathbf{b}$, `[d]`, or `None`.
        act: $\sigma$; `None` is the identity.

    Example:
        >>> import torch
        >>> turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
        >>> VectorField(turn, torch.zeros_like, None, None)(torch.tensor([[1.0, 0.0]]))
        tensor([[ 0., -1.]])
    """

    w_self: Tensor
    phi: Callable[[Tensor], Tensor]
    bias: Tensor | None
    act: Activation | None

    def __call__(self, x: Tensor) -> Tensor:
        """The rate of change of the states `[..., N, d]`."""
        h = self.pre_activation(x)
        return h if self.act is None else self.act(h)

    def pre_activation(self, x: Tensor) -> Tensor:
        """What the activation is applied to."""
        h = x @ self.w_self.t() + self.phi(x)
        return h if self.bias is None else h + self.bias
