"""DGC: decoupled graph convolution, a diffusion without weights."""

from collections.abc import Iterator
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from adgn.graph import GraphOperator
from adgn.graph.adjacency import Normalization
from adgn.nn.base import Activation
from adgn.nn.models.diffusion import Diffusion, DiffusionOptions
from adgn.nn.models.options import StepSize
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class DGCOptions(DiffusionOptions):
    """The options of DGC."""

    epsilon: StepSize = 0.1
    diffusion: Literal["adjacency", "laplacian"] = Field(
        "adjacency",
        description="M: `adjacency`, the normalised Â, as in the A-DGN paper's experiments; "
        "`laplacian`, I − Â: the heat equation, as in the DGC paper",
    )
    improved: bool = Field(True, description="self loops of weight 2 in Â")
    act: str | Activation | None = Field("tanh", description="activation after the last step")


class DGCPropagation(Diffusion):
    """The diffusion, and the activation at its end."""

    def __init__(self, channels: int, num_layers: int, options: DGCOptions) -> None:
        kind: Normalization = "gcn-improved" if options.improved else "gcn"
        super().__init__(num_layers, kind, options.act, options.direction)
        self.epsilon = options.epsilon
        self.diffusion = options.diffusion

    def steps(self, x: Tensor, operator: GraphOperator) -> Iterator[Tensor]:
        """The states after each step; the activation belongs to the last."""
        for step in range(self.num_layers):
            change = operator @ x
            if self.diffusion == "laplacian":
                change = x - change
            x = torch.sub(x, change, alpha=self.epsilon)
            yield x if step + 1 < self.num_layers else self.activate(x)

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return f"{super().extra_repr()}, epsilon={self.epsilon}, diffusion={self.diffusion!r}"


@register_model(
    "dgc",
    title="DGC",
    paper="https://arxiv.org/abs/2102.10739",
    rule=r"\mathbf{X}^L = \sigma((\mathbf{I} - \epsilon \mathbf{M})^L \mathbf{X}^0),\quad "
    r"\mathbf{M} = \hat{\mathbf{A}} \text{ or } \mathbf{I} - \hat{\mathbf{A}}",
    memory="1",
    time="md",
    options=DGCOptions,
    note="The A-DGN paper's experiments subtract $\\epsilon \\hat{\\mathbf{A}} \\mathbf{X}$; the "
    "heat equation, `diffusion='laplacian'`, subtracts $\\epsilon (\\mathbf{I} - "
    "\\hat{\\mathbf{A}}) \\mathbf{X}$.",
)
class DGC(Model):
    """Decoupled graph convolution."""

    build_propagation = DGCPropagation
