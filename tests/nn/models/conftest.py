"""A graph with all that makes graphs awkward, and PyG networks put together by hand."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from adgn.nn import GraphNetwork


class Graph(NamedTuple):
    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor


@pytest.fixture
def graph() -> Graph:
    """Directed, with a self loop, a repeated edge, an isolated node and positive weights."""
    generator = torch.Generator().manual_seed(7)
    edge_index = torch.tensor([[0, 1, 1, 2, 3, 3, 4, 0, 0, 5], [1, 0, 2, 1, 3, 4, 3, 1, 4, 2]])
    return Graph(
        torch.randn(7, 3, dtype=torch.float64, generator=generator),
        edge_index,
        torch.rand(10, dtype=torch.float64, generator=generator) + 0.5,
    )


class ByHand(nn.Module):
    """Linear encoder, PyG convolutions, linear readout: written without this package."""

    def __init__(
        self, convs: list[nn.Module], act: Callable[[Tensor], Tensor], initial: bool = False
    ) -> None:
        super().__init__()
        self.encoder = nn.Linear(3, 4)
        self.convs = nn.ModuleList(convs)
        self.readout = nn.Linear(4, 2)
        self.act = act
        self.initial = initial

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        first = x = self.encoder(x)
        weights = () if edge_weight is None else (edge_weight,)
        for conv in self.convs:
            inputs = (x, first) if self.initial else (x,)
            x = self.act(conv(*inputs, edge_index, *weights))
        return self.readout(x)


@pytest.fixture
def assert_same_as_pyg(graph: Graph) -> Callable[..., None]:
    """Gives a PyG network our model's weights and compares outputs and gradients."""

    def check(
        model: GraphNetwork,
        convs: list[nn.Module],
        *,
        act: Callable[[Tensor], Tensor] = torch.tanh,
        initial: bool = False,
        weighted: bool = False,
    ) -> None:
        by_hand = ByHand(convs, act, initial).double()
        model.double()
        by_hand.encoder.load_state_dict(model.encoder.state_dict())
        by_hand.readout.load_state_dict(model.readout.state_dict())
        for theirs, ours in zip(by_hand.convs, model.propagation.layers, strict=True):
            theirs.load_state_dict(ours.state_dict())
        weights = (graph.edge_weight,) if weighted else ()
        ours_x = graph.x.clone().requires_grad_()
        theirs_x = graph.x.clone().requires_grad_()
        ours_out = model(ours_x, graph.edge_index, *weights)
        theirs_out = by_hand(theirs_x, graph.edge_index, *weights)
        torch.testing.assert_close(ours_out, theirs_out, rtol=1e-10, atol=1e-12)
        ours_out.square().sum().backward()
        theirs_out.square().sum().backward()
        torch.testing.assert_close(ours_x.grad, theirs_x.grad, rtol=1e-10, atol=1e-12)
        for theirs, ours in zip(by_hand.convs, model.propagation.layers, strict=True):
            for (name, left), right in zip(
                theirs.named_parameters(), ours.parameters(), strict=True
            ):
                torch.testing.assert_close(
                    right.grad, left.grad, rtol=1e-9, atol=1e-11, msg=lambda m, n=name: f"{n}: {m}"
                )

    return check
