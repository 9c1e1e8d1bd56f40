"""GESN, against its equation written with dense matrices."""

import networkx as nx
import pytest
import torch

from adgn.graph import GraphBlocks, graph_operator, set_backend
from adgn.graph.native.library import native_library
from adgn.graph.spectrum import spectral_radius
from adgn.nn import build_model
from adgn.nn.models.gesn import EchoStates, GESNOptions

MATRICES = ("uniform", "ring", "orthogonal", "symmetric", "antisymmetric", "diagonal")
every_matrix = pytest.mark.parametrize("matrix", MATRICES)


def undirected(graph):
    return torch.tensor(list(graph.to_directed().edges)).t()


GRAPH = undirected(nx.barabasi_albert_graph(12, 2, seed=3))
X = torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def adjacency(edge_index=GRAPH, nodes=12):
    return torch.zeros(nodes, nodes, dtype=torch.float64).index_put(
        (edge_index[1], edge_index[0]), torch.ones(edge_index.size(1)).double(), accumulate=True
    )


def radius():
    """Of GRAPH, as the model has it: tests/graph/test_spectrum.py says how exact it is."""
    return float(spectral_radius(graph_operator(GRAPH, num_nodes=12, like=X)))


def build(num_layers=4, hidden=7, seed=0, **options):
    torch.manual_seed(seed)
    return build_model("gesn", 3, hidden, 2, num_layers, **options).double()


@every_matrix
@pytest.mark.parametrize("leak", [1.0, 0.4])
def test_the_equation(matrix, leak):
    model = build(matrix=matrix, leak=leak, radius=1.7, input_scale=2.0)
    a = adjacency()
    w = 1.7 / radius() * model.propagation.dense_matrix()
    inputs = 2.0 * model.encode(X)
    state = torch.zeros_like(inputs)
    for _ in range(5):  # from zero: four layers and the first states
        state = (1 - leak) * state + leak * torch.tanh(inputs + a @ state @ w.t())
    torch.testing.assert_close(model.states(X, GRAPH), state)


@every_matrix
@pytest.mark.parametrize("units", [1, 2, 30])
def test_matrices_have_spectral_radius_one(matrix, units):
    torch.manual_seed(1)
    reservoir = EchoStates(units, 1, GESNOptions(matrix=matrix))
    dense = reservoir.dense_matrix().detach()
    radius = float(torch.linalg.eigvals(dense).abs().max())
    nothing = matrix == "antisymmetric" and units == 1
    assert radius == pytest.approx(0.0 if nothing else 1.0, abs=1e-5)


def test_matrices_have_their_property():
    torch.manual_seed(2)
    dense = {m: EchoStates(20, 1, GESNOptions(matrix=m)).dense_matrix().detach() for m in MATRICES}
    eye = torch.eye(20)
    torch.testing.assert_close(dense["ring"], eye.roll(1, 0))
    torch.testing.assert_close(dense["orthogonal"] @ dense["orthogonal"].t(), eye)
    assert torch.equal(dense["symmetric"], dense["symmetric"].t())
    assert torch.equal(dense["antisymmetric"], -dense["antisymmetric"].t())
    assert torch.equal(dense["diagonal"], dense["diagonal"].diag().diag())
    assert len({float(dense[m].abs().sum()) for m in MATRICES}) == len(MATRICES)


@pytest.mark.parametrize("matrix", ["uniform", "symmetric", "antisymmetric"])
def test_the_laws_of_large_matrices(matrix, monkeypatch):
    monkeypatch.setattr("adgn.nn.models.gesn._EXACT_UNITS", 100)
    torch.manual_seed(0)
    dense = EchoStates(400, 1, GESNOptions(matrix=matrix)).dense_matrix().detach()
    assert float(torch.linalg.eigvals(dense).abs().max()) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("matrix", ["ring", "orthogonal", "symmetric", "antisymmetric", "diagonal"])
def test_below_radius_one_it_reaches_a_fixed_point(matrix):
    model = build(num_layers=2000, matrix=matrix, radius=0.95, tolerance=1e-12)
    operator = model.propagation.operator(model.encode(X), GRAPH)
    states = list(model.propagation.steps(model.encode(X), operator))
    assert len(states) < 1500  # it stopped by itself
    w = 0.95 / radius() * model.propagation.dense_matrix()
    again = torch.tanh(model.encode(X) + adjacency() @ states[-1] @ w.t())
    torch.testing.assert_close(again, states[-1], rtol=0, atol=2e-12)
    assert float((states[-1] - states[-2]).abs().max()) <= 1e-12
    assert len(model.propagation.trajectory(model.encode(X), GRAPH)) == 2001


def test_far_above_radius_one_all_layers_are_made():
    model = build(num_layers=60, radius=20.0, tolerance=1e-12, hidden=30)
    operator = model.propagation.operator(model.encode(X), GRAPH)
    assert len(list(model.propagation.steps(model.encode(X), operator))) == 60


@every_matrix
def test_native_and_torch_give_the_same(matrix):
    if native_library() is None:
        pytest.skip("the native library is not there")
    model = build(matrix=matrix)
    native = model(X, GRAPH)
    try:
        set_backend("torch")
        torch.testing.assert_close(model(X, GRAPH.clone()), native)
    finally:
        set_backend("auto")


def test_a_batch_has_the_radius_of_each_graph():
    star = undirected(nx.star_graph(5))
    both = torch.cat([GRAPH, star + 12], 1)
    x = torch.cat([X, X[:6]])
    batch = torch.tensor([0] * 12 + [1] * 6)
    model = build(radius=3.0)
    expected = torch.cat([model(X, GRAPH), model(X[:6], star)])
    torch.testing.assert_close(model(x, both, batch=batch), expected)
    selected = GraphBlocks(both, torch.tensor([0, 12, 18])).select(torch.tensor([0, 1]))
    torch.testing.assert_close(model(x, selected, batch=selected.batch, batch_size=2), expected)


def test_a_graph_without_cycles_counts_as_radius_one():
    path = torch.tensor([[0, 1], [1, 2]])
    model = build(num_layers=2, radius=0.5, matrix="ring", input_scale=0.5)
    inputs = 0.5 * model.encode(X[:3])
    first = torch.tanh(inputs)
    second = torch.tanh(inputs[1] + 0.5 * first[0].roll(1))
    third = torch.tanh(inputs[2] + 0.5 * second.roll(1))
    torch.testing.assert_close(model.states(X[:3], path)[2], third)


def test_nothing_but_the_readout_is_learnt():
    for readout in ("ridge", "linear", "mlp"):
        model = build(readout=readout)
        trained = {
            name.partition(".")[0] for name, p in model.named_parameters() if p.requires_grad
        }
        assert trained == {"readout"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train_recurrent": True}, "train_recurrent=True is not valid for gesn"),
        ({"matrix": "rings"}, "matrix='rings' is not valid for gesn"),
        ({"radius": 0.0}, "radius=0.0 is not valid for gesn"),
        ({"leak": 1.5}, "leak=1.5 is not valid for gesn"),
        ({"tolerance": -1.0}, "tolerance=-1.0 is not valid for gesn"),
        ({"dropout": 0.5}, "readout='ridge' with dropout=0.5 is not valid"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        build(**options)
