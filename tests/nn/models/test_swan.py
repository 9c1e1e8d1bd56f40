"""SWAN against its equation, written out densely, and the antisymmetry that it claims."""

import pytest
import torch
from torch import Tensor

from adgn.graph import GraphBlocks, set_backend
from adgn.nn import build_model
from tests.graphs import edges

PAIRS = edges((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (4, 2))
UNDIRECTED = torch.cat([PAIRS, PAIRS.flip(0)], 1)
X = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4))  # 5 is alone


def swan(num_layers=1, **options):
    torch.manual_seed(1)
    settings = {
        "encoder": "none",
        "readout": "none",
        "gamma": 0.0,
        "beta": 0.7,
        "edge_norm": "none",
    }
    return build_model("swan", 3, 3, 3, num_layers, **{**settings, **options}).double()


def dense_operators(adjacency: Tensor) -> tuple[Tensor, Tensor]:
    """D^{-1/2} A D^{-1/2} and D⁻¹A − (D⁻¹A)ᵀ, with rows of degree 0 left at 0."""
    degree = adjacency.sum(1)
    inverse = torch.where(degree == 0, 0.0, 1 / degree)
    mean = inverse[:, None] * adjacency
    return inverse.sqrt()[:, None] * adjacency * inverse.sqrt(), mean - mean.T


def dense(graph: Tensor, weight: Tensor | None = None) -> Tensor:
    matrix = torch.zeros(6, 6, dtype=torch.float64)
    values = torch.ones(graph.size(1), dtype=torch.float64) if weight is None else weight
    return matrix.index_put((graph[1], graph[0]), values, accumulate=True)


def jacobian(model, graph, x=X) -> Tensor:
    """Of one step without the first states, divided by the step size: the right-hand side's."""
    full = torch.autograd.functional.jacobian(lambda states: model(states, graph), x)
    size = x.numel()
    return (full.reshape(size, size) - torch.eye(size, dtype=torch.float64)) / 0.1


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("graph", [UNDIRECTED, PAIRS], ids=["undirected", "directed"])
def test_two_steps_are_the_equation(graph, bounded):
    model = swan(2, bounded=bounded, weight_sharing=False, gamma=0.3)
    propagation = model.propagation
    weight = torch.linspace(0.5, 1.5, graph.size(1), dtype=torch.float64)
    symmetric, skew = dense_operators(dense(graph, weight))
    x = X
    for w, v, z, b in zip(*(p.detach() for p in propagation.parameters()), strict=True):
        first = v if bounded else v - v.T
        own = x @ (w - w.T - 0.3 * torch.eye(3, dtype=torch.float64)).T
        h = own + symmetric @ x @ first.T + 0.7 * skew @ x @ (z + z.T).T + b
        x = x + 0.1 * torch.tanh(h)
    torch.testing.assert_close(model(X, graph, weight), x, rtol=1e-12, atol=1e-13)
    states = propagation.trajectory(X, graph, weight)
    assert len(states) == 3
    torch.testing.assert_close(states[-1], x, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("space", ["fixed", "learned"])
def test_the_full_jacobian_is_antisymmetric(space):
    """Of the right-hand side without activation, on the graph as its operators see it."""
    model = swan(space=space, act=None)
    operators = model.propagation.prepared(X, UNDIRECTED)
    k = jacobian(lambda x, _: model(x, operators), UNDIRECTED)
    assert k.abs().max() > 0.1
    torch.testing.assert_close(k, -k.T, rtol=0, atol=1e-12)
    assert torch.linalg.eigvals(k).real.abs().max() < 1e-12


@pytest.mark.parametrize("dropped", ["V", "Z", "direction", "gamma"])
def test_without_one_of_its_parts_the_jacobian_is_not_antisymmetric(dropped):
    graph = PAIRS if dropped == "direction" else UNDIRECTED
    model = swan(act=None, bounded=dropped == "V", gamma=0.2 if dropped == "gamma" else 0.0)
    if dropped == "Z":  # Z − Zᵀ in place of Z + Zᵀ
        whole = model.propagation.w_neigh()
        z = model.propagation.Z
        changed = torch.cat([whole[:, :3], 0.7 * (z - z.mT)], 1)
        model.propagation.w_neigh = lambda: changed
    k = jacobian(model, graph)
    assert (k + k.T).abs().max() > 0.05


def test_a_directed_graph_made_undirected_is_antisymmetric_again():
    k = jacobian(swan(act=None, direction="undirected"), PAIRS)
    torch.testing.assert_close(k, -k.T, rtol=0, atol=1e-12)


def test_antisymmetric_steps_of_midpoint_keep_the_norm():
    options = {"act": None, "bias": False, "epsilon": 0.3, "integrator": "implicit-midpoint"}
    with torch.no_grad():
        last = swan(200, **options)(X, UNDIRECTED)
        lost = swan(200, **options, bounded=True)(X, UNDIRECTED)
    torch.testing.assert_close(last.norm(), X.norm(), rtol=1e-9, atol=0)
    assert abs(lost.norm() - X.norm()) > 0.1 * X.norm()


def test_learned_operators_are_those_of_the_edges_strengths():
    model = swan(space="learned")
    weight = torch.linspace(0.5, 1.5, 12, dtype=torch.float64)
    pair = model.propagation.prepared(X, UNDIRECTED, weight)
    strength = model.propagation.strength
    hidden = strength.target(X)[UNDIRECTED[1]] + strength.source(X)[UNDIRECTED[0]]
    e = torch.relu(strength.score(torch.nn.functional.leaky_relu(hidden))).flatten() * weight
    assert (e > 0).any()
    matrix = dense(UNDIRECTED, e)
    symmetric, _ = dense_operators((matrix + matrix.T) / 2)
    _, skew = dense_operators(matrix)
    torch.testing.assert_close(pair.inward.to_dense(), symmetric)
    torch.testing.assert_close(pair.outward.to_dense(), skew)


def test_learned_weights_of_all_forms_of_a_graph():
    model = swan(2, space="learned")
    weight = torch.linspace(0.5, 1.5, 12, dtype=torch.float64)
    expected = model(X, UNDIRECTED, weight)
    matrix = torch.sparse_coo_tensor(UNDIRECTED.flip(0), weight, (6, 6)).to_sparse_csr()
    torch.testing.assert_close(model(X, matrix), expected)
    blocks = GraphBlocks(UNDIRECTED, torch.tensor([0, 6]), weight)
    torch.testing.assert_close(model(X, blocks.select(torch.tensor([0]))), expected)


@pytest.mark.parametrize("integrator", ["euler", "rk4", "ab2"])
def test_native_kernels_give_what_torch_gives(integrator):
    model = swan(4, integrator=integrator, gamma=0.1)
    results = []
    for backend in ("native", "torch"):
        with set_backend(backend):
            out = model(X, UNDIRECTED)
            results.append([out, *torch.autograd.grad(out.sin().sum(), model.parameters())])
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-12)


def test_checkpoints_change_nothing():
    grads = []
    for memory in ("full", "checkpoint"):
        model = swan(7, memory=memory, space="learned")
        model(X, UNDIRECTED).sin().sum().backward()
        grads.append([p.grad for p in model.parameters()])
    torch.testing.assert_close(*grads)


def test_multi_step_methods_need_shared_weights():
    with pytest.raises(ValueError, match=r"integrator='ab2' uses the rates of earlier layers"):
        swan(3, integrator="ab2", weight_sharing=False)
