"""Stable-ChebNet: A-DGN whose Chebyshev filters are antisymmetric too."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from torch import nn

from adgn.graph import OperatorDirection
from adgn.nn.base import Activation
from adgn.nn.models.adgn import AntiSymmetricPropagation
from adgn.nn.models.options import AnyIntegrator, KeptMemory, StepSize
from adgn.nn.network import Model
from adgn.nn.registry import ModelOptions, register_model


class StableChebOptions(ModelOptions):
    """The options of Stable-ChebNet."""

    degree: int = Field(
        2, ge=1, description="the highest degree K of the polynomials: a layer's hops"
    )
    weight_sharing: bool = Field(True, description="one set of weights, or one per layer")
    epsilon: StepSize = 0.1
    gamma: float = Field(0.0, ge=0, allow_inf_nan=False, description="the diffusion γ")
    act: str | Activation | None = Field("tanh", description="the activation σ")
    bias: bool = Field(True, description="whether there is a b")
    memory: KeptMemory = "full"
    integrator: AnyIntegrator = "euler"
    integrator_options: Mapping[str, Any] | None = Field(
        None, description="options of a named integrator"
    )
    direction: OperatorDirection = Field(
        "in",
        description="where a node listens: `in`, `out` or `undirected`; L̃ is symmetric for "
        "`undirected`, or where the graph is",
    )


@register_model(
    "stable-cheb",
    title="Stable-ChebNet",
    paper="https://arxiv.org/abs/2506.07624",
    rule=r"\mathbf{X}^\ell = \mathbf{X}^{\ell-1} + \epsilon\, \sigma\Big(\sum_{k=0}^{K} "
    r"T_k(\tilde{\mathbf{L}}) \mathbf{X}^{\ell-1} (\mathbf{W}_k - \mathbf{W}_k^\top)^\top - \gamma "
    r"\mathbf{X}^{\ell-1} + \mathbf{b}\Big),\quad \tilde{\mathbf{L}} = -\mathbf{D}^{-1/2} "
    r"\mathbf{A} \mathbf{D}^{-1/2}",
    hops_per_layer=2,
    memory="Knd",
    time="K (nd^2 + md)",
    options=StableChebOptions,
    note="On an undirected graph the Jacobian of all states before the activation is antisymmetric "
    "for γ = 0; with `direction='undirected'` on every graph. γ acts on the constant term alone: "
    "in all terms, as $\\mathbf{W}_k - \\mathbf{W}_k^\\top - \\gamma \\mathbf{I}$, it would "
    "amplify the frequencies at which $\\sum_k T_k < 0$. The receptive field is that of degree 2.",
)
class StableCheb(Model):
    r"""[Stable-ChebNet](https://arxiv.org/abs/2506.07624): Chebyshev filters that keep energy.

    $$
    \mathbf{X} \leftarrow \mathbf{X} + \epsilon\, \sigma\Big(\sum_{k=0}^{K}
        T_k(\tilde{\mathbf{L}})\, \mathbf{X} (\mathbf{W}_k - \mathbf{W}_k^\top)^\top - \gamma
        \mathbf{X} + \mathbf{b}\Big), \qquad
    \tilde{\mathbf{L}} = -\mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}
    $$

    It is A-DGN with `phi="cheb"` and antisymmetric weights in all terms. Its options are those of
    `model_spec("stable-cheb")`.

    Example:
        >>> import torch
        >>> from adgn.nn import build_model
        >>> model = build_model("stable-cheb", 3, 16, 2, num_layers=4, degree=5)
        >>> model(torch.randn(3, 3), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 2])
    """

    @staticmethod
    def build_propagation(channels: int, num_layers: int, options: StableChebOptions) -> nn.Module:
        """The updates."""
        given = options.beyond(ModelOptions)
        filters = {"degree": given.pop("degree"), "antisymmetric": True}
        return AntiSymmetricPropagation(
            channels, num_layers, phi="cheb", phi_kwargs=filters, **given
        )
