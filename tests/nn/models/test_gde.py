"""GDE: its right-hand side by PyG's layers, and the order of its steps."""

import torch
import torch_geometric.nn as pyg

from adgn.nn import build_model

X = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


def gde(num_layers, **options):
    torch.manual_seed(1)
    settings = {"encoder": "none", "readout": "none", **options}
    return build_model("gde", 3, 3, 3, num_layers, **settings).double()


def test_the_rate_is_two_of_pygs_layers(graph):
    model = gde(1, epsilon=0.1, integrator="euler")
    physics = model.propagation
    inner, outer = pyg.GCNConv(3, 3).double(), pyg.GCNConv(3, 3).double()
    for theirs, ours in ((inner, physics.inner), (outer, physics.outer)):
        theirs.lin.weight.data.copy_(ours.weight.detach())
        theirs.bias.data.copy_(ours.bias.detach())
    hidden = torch.nn.functional.softplus(inner(X, graph.edge_index))
    expected = X + 0.1 * outer(hidden, graph.edge_index)
    torch.testing.assert_close(model(X, graph.edge_index), expected)


@torch.no_grad()
def test_steps_have_order_4(graph):
    exact = gde(64, epsilon=1 / 64)(X, graph.edge_index)
    coarse, fine = (
        float((gde(n, epsilon=1 / n)(X, graph.edge_index) - exact).abs().max()) for n in (2, 4)
    )
    assert fine > 1e-10
    assert 10 < coarse / fine < 30


def test_adjoint_gradients_are_near_those_of_the_steps(graph):
    grads = []
    for options in (
        {"num_layers": 20, "epsilon": 0.05},
        {
            "num_layers": 1,
            "epsilon": 1.0,
            "integrator": "dopri5",
            "integrator_options": {"rtol": 1e-9, "atol": 1e-9, "adjoint": True},
        },
    ):
        model = gde(**options, controlled=True)
        model(X, graph.edge_index).sin().sum().backward()
        grads.append([p.grad for p in model.parameters()])
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-5)


def test_the_controlled_one_reads_the_first_states(graph):
    model = gde(3, controlled=True)
    assert model.propagation.inner.weight.shape == (3, 6)
    with torch.no_grad():
        model.propagation.inner.weight[:, :3] = 0  # the rate is then constant in time
    states = model.propagation.trajectory(X, graph.edge_index)
    torch.testing.assert_close(states[2] - states[1], states[1] - states[0])
