"""Every layer and model in every direction, against PyG's and its own on turned edges."""

import copy

import pytest
import torch
import torch_geometric.nn as pyg
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

from adgn.graph import (
    DIRECTIONS,
    GraphBlocks,
    TwoWayOperator,
    cache_info,
    graph_operator,
    set_backend,
    turned,
)
from adgn.graph.direction import OPERATOR_DIRECTIONS
from adgn.nn import ADGN, AntiSymmetricConv, available_models, build_model, conv, model_spec
from adgn.nn.antisymmetric import as_one_integration
from adgn.nn.conv import BothDirections, directed
from adgn.nn.integration import integrate
from adgn.nn.integration_run import integrate_reference
from tests.crossing import covering
from tests.graphs import CORNER_CASES, both_ways, edges, graphs
from tests.nn.test_integration import ACTS, BACKENDS, MEMORIES, small_graphs

GRAPH = edges((0, 1), (1, 2), (3, 2), (3, 3), (0, 1), (4, 3), (2, 4))
REVERSED = GRAPH.flip(0)
UNION = turned(GRAPH, None, 6, "undirected")[0]
WEIGHT = torch.linspace(0.5, 2.0, 7, dtype=torch.float64)
X = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
TURNED = {"in": GRAPH, "out": REVERSED, "undirected": UNION}
CONVS = {
    "gcn": (lambda: conv.GCNConv(4, 4), lambda: pyg.GCNConv(4, 4)),
    "graphsage": (lambda: conv.SAGEConv(4, 4), lambda: pyg.SAGEConv(4, 4)),
    "gin": (lambda: conv.GINConv(4, 4), lambda: pyg.GINConv(nn.Linear(4, 4), train_eps=True)),
    "gat": (lambda: conv.GATConv(4, 4, heads=2), lambda: pyg.GATConv(4, 2, heads=2)),
    "ggnn": (lambda: conv.GatedGraphConv(4, 2), lambda: pyg.GatedGraphConv(4, 2)),
}
GRAPH_MODELS = [name for name in available_models() if name != "mlp"]
EVERY_CONV = pytest.mark.parametrize("name", CONVS)
EVERY_MODEL = pytest.mark.parametrize("name", GRAPH_MODELS)
TURNS = pytest.mark.parametrize("direction", OPERATOR_DIRECTIONS)


def values_and_gradients(layer: nn.Module, out: Tensor, x: Tensor) -> list[Tensor]:
    return [out, *torch.autograd.grad(out.sin().sum(), [x, *layer.parameters()])]


def takes(name: str, direction: str) -> bool:
    return direction in model_spec(name).options.model_fields["direction"].annotation.__args__


@TURNS
@EVERY_CONV
def test_layers_are_pygs_on_turned_edges(name, direction):
    make, theirs = CONVS[name]
    ours, other = directed(make, direction).double(), theirs().double()
    other.load_state_dict(ours.state_dict())
    x = X.clone().requires_grad_()
    results = [
        values_and_gradients(layer, layer(x, graph), x)
        for layer, graph in ((ours, GRAPH), (other, TURNED[direction]))
    ]
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-12)


@EVERY_CONV
def test_both_directions_are_two_of_pygs_layers(name):
    make, theirs = CONVS[name]
    ours = directed(make, "both").double()
    inward, outward = theirs().double(), theirs().double()
    inward.load_state_dict(ours.inward.state_dict())
    outward.load_state_dict(ours.outward.state_dict())
    x = X.clone().requires_grad_()
    expected = inward(x, GRAPH) + outward(x, REVERSED)
    pair = nn.ModuleList([inward, outward])
    torch.testing.assert_close(
        values_and_gradients(ours, ours(x, GRAPH), x),
        values_and_gradients(pair, expected, x),
        rtol=1e-10,
        atol=1e-12,
    )


@pytest.mark.parametrize("aggr", ["mean", "sum"])
def test_the_mean_of_both_directions_is_pygs_directed_layer(aggr):
    def make():
        return conv.SAGEConv(4, 4, aggr=aggr, root_weight=False)

    ours = directed(make, "both", scale=0.5).double()
    theirs = pyg.DirGNNConv(
        pyg.SAGEConv(4, 4, aggr=aggr, root_weight=False), root_weight=False
    ).double()
    theirs.conv_in.load_state_dict(ours.inward.state_dict())
    theirs.conv_out.load_state_dict(ours.outward.state_dict())
    torch.testing.assert_close(ours(X, GRAPH), theirs(X, GRAPH))


@pytest.mark.parametrize("weighted", [False, True])
@TURNS
@EVERY_MODEL
def test_models_are_themselves_on_turned_edges(name, direction, weighted):
    torch.manual_seed(0)
    # In evaluation nothing is drawn at random.
    model = build_model(name, 4, 4, 2, num_layers=3, direction=direction).double().eval()
    plain = build_model(name, 4, 4, 2, num_layers=3, direction="in").double().eval()
    plain.load_state_dict(model.state_dict())
    weight = WEIGHT if weighted else None
    torch.testing.assert_close(
        model(X, GRAPH, weight), plain(X, *turned(GRAPH, weight, 6, direction))
    )


@EVERY_MODEL
def test_models_with_both_directions(name):
    if not takes(name, "both"):
        with pytest.raises(
            ValueError, match=r"direction='both' is not valid for [\w-]+: .*undirected"
        ):
            build_model(name, 4, 4, 2, num_layers=3, direction="both")
        return
    torch.manual_seed(0)
    # The Laplacian "sym" divides by degrees of senders too: those of degree zero are not heard.
    options = {"laplacian": "rw"} if name == "sonar" else {}
    model = build_model(name, 4, 4, 2, num_layers=3, direction="both", **options).double()
    plain = build_model(name, 4, 4, 2, num_layers=3, **options).double()
    assert sum(p.numel() for p in model.parameters()) > sum(p.numel() for p in plain.parameters())
    out = model(X, GRAPH, WEIGHT)
    x = X.clone().requires_grad_()
    heard = torch.autograd.grad(model(x, GRAPH)[1].sum(), x)[0].abs().sum(-1)
    if name == "cheb":  # it divides by degrees of senders as "sym" does: 0 has no incoming edge
        assert heard[0] == 0
        heard[0] = heard[1]
    assert (heard[:5] > 0).all()  # along the edges, against them, and not from node 5 without any
    assert (heard[5] == 0) == (name != "pairnorm")  # but for the mean of all nodes
    # Once more with the edges turned and the directions exchanged.
    exchanged = copy.deepcopy(model)
    state = model.state_dict()
    if name == "ggnn":
        for key, value in state.items():
            if key.endswith(".weight") and value.dim() == 3:
                state[key] = value.roll(4, dims=-1)
    elif name in ("mpssm", "sonar"):  # a matrix for each direction in one tensor
        state = {key: value.flip(0) if value.dim() == 3 else value for key, value in state.items()}
    else:
        swap = {"inward": "outward", "outward": "inward"}
        state = {
            ".".join(swap.get(part, part) for part in key.split(".")): value
            for key, value in state.items()
        }
    exchanged.load_state_dict(state)
    torch.testing.assert_close(exchanged(X, REVERSED, WEIGHT), out)
    assert not torch.allclose(exchanged(X, GRAPH, WEIGHT), out)


def test_ggnn_adds_the_messages_of_both_directions():
    layer = conv.GatedGraphConv(4, 1, direction="both").double()
    inward, outward = layer.weight[0].chunk(2, dim=-1)
    adjacency = graph_operator(GRAPH, num_nodes=6, like=X).to_dense()
    messages = adjacency @ X @ inward + adjacency.t() @ X @ outward
    torch.testing.assert_close(layer(X, GRAPH), layer.rnn(messages, X))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("options", [{"phi": "gine"}, {"phi": "gat", "phi_kwargs": {"heads": 2}}])
def test_edge_features_go_with_their_edges(options, direction):
    torch.manual_seed(0)
    features = torch.randn(7, 3, dtype=torch.float64)
    build = {"num_layers": 2, "edge_dim": 3, **options}
    model = ADGN(4, 4, 2, **build, direction=direction).double()
    out = model(X, GRAPH, edge_attr=features)
    if direction == "both":
        phi = model.propagation.layers[0].phi
        x = model.encode(X)
        expected = phi.inward(x, GRAPH, edge_attr=features)
        phi.outward.direction = "in"
        expected = expected + phi.outward(x, REVERSED, edge_attr=features)
        phi.outward.direction = "out"
        torch.testing.assert_close(phi(x, GRAPH, edge_attr=features), expected)
        return
    plain = ADGN(4, 4, 2, **build).double()
    plain.load_state_dict(model.state_dict())
    index, mean = turned(GRAPH, features, 6, direction)
    torch.testing.assert_close(out, plain(X, index, edge_attr=mean))


def test_merged_edge_features_are_not_traced():
    layer = AntiSymmetricConv(4, "gine", phi_kwargs={"edge_dim": 3}, direction="undirected")
    with pytest.raises(ValueError, match="merges edges, cannot be traced or explained"):
        layer.to("meta")(
            X.float().to("meta"), GRAPH.to("meta"), edge_attr=torch.ones(7, 3, device="meta")
        )


@covering("phi, direction", ["sum", "gcn", "gat", "gcnii", "ggnn", "gin", "graphsage"], DIRECTIONS)
def test_every_aggregation_has_gradients(phi, direction):
    torch.manual_seed(0)
    layer = AntiSymmetricConv(3, phi, num_iters=2, direction=direction).double()
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    weight = WEIGHT.clone().requires_grad_()
    names = [name for name, _ in layer.named_parameters()]

    def outputs(x, weight, *parameters):
        state = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(layer, state, (x, GRAPH, weight))

    parameters = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    assert gradcheck(outputs, [x, weight, *parameters])


def two_way(graph: Tensor, nodes: int, normalization="none", weight=None, dtype=torch.float64):
    kind = {"num_nodes": nodes, "normalization": normalization}
    kind["like"] = torch.empty(0, dtype=dtype)
    both = (graph_operator(graph, weight, **kind, direction=d) for d in ("in", "out"))
    return TwoWayOperator(*both)


def solve(function, operator, weights, nodes, act, steps, **options):
    leaves = [t.clone().requires_grad_() for t in weights]
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(nodes, leaves[0].size(-1), generator=generator, dtype=leaves[0].dtype)
    x.requires_grad_()
    out = function(x, operator, *leaves, epsilon=0.1, act=act, num_steps=steps, **options)
    pull = torch.linspace(-1, 1.7, out.numel(), dtype=out.dtype).view_as(out)
    return [out.detach(), *torch.autograd.grad((out * pull).sum(), [x, *leaves])]


def random_weights(sets, channels, dtype=torch.float64):
    generator = torch.Generator().manual_seed(2)
    shapes = ((sets, channels, channels), (sets, 2 * channels, channels), (sets, channels))
    return [0.2 * torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]


@pytest.mark.parametrize("backend", BACKENDS)
@covering("sets, channels, act, memory", [1, 20], [5, 16, 33], ACTS, MEMORIES, strength=2)
def test_integration_with_both_directions(sets, channels, act, memory, backend):
    """By the kernels and by torch, against the plain loop; 20 steps have checkpoints inside."""
    generator = torch.Generator().manual_seed(0)
    graph = torch.randint(0, 60, (2, 200), generator=generator)
    weight = torch.rand(200, generator=generator, dtype=torch.float64) + 0.5
    for normalization in ("none", "gcn"):
        problem = (two_way(graph, 60, normalization, weight), random_weights(sets, channels), 60)
        with set_backend(backend):
            found = solve(integrate, *problem, ACTS[act], 20, memory=memory)
        expected = solve(integrate_reference, *problem, ACTS[act], 20)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("sets", [1, 6])
def test_integration_with_both_directions_of_small_graphs(sets, act, backend):
    """The kernels work graph by graph."""
    blocks = small_graphs()
    selected = blocks.select(torch.tensor([3, 0, 8, 3, 5, 1, 2, 7]))
    pair = TwoWayOperator(*(selected.operator("gcn", torch.float64, d) for d in ("in", "out")))
    assert pair.inward.pattern.block_ptr is pair.outward.pattern.block_ptr is not None
    problem = (pair, random_weights(sets, 5), selected.num_nodes)
    with set_backend(backend):
        found = solve(integrate, *problem, ACTS[act], 6)
    plain = two_way(selected.edge_index, selected.num_nodes, "gcn")
    expected = solve(integrate_reference, plain, *problem[1:], ACTS[act], 6)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


@given(graph=graphs(), channels=st.integers(1, 9), seed=st.integers(0, 99))
def test_the_fast_path_is_the_sum_written_out(graph, channels, seed):
    """Φ = A X V₁ᵀ + Aᵀ X V₂ᵀ, step by step with dense matrices."""
    torch.manual_seed(seed)
    layer = AntiSymmetricConv(channels, "sum", num_iters=4, direction="both").double()
    x = graph.features(channels, seed=seed)
    weight = graph.weight(torch.float64)
    dense = graph_operator(graph.edge_index, weight, num_nodes=graph.num_nodes, like=x).to_dense()
    first, second = layer.phi.inward.lin.weight, layer.phi.outward.lin.weight
    expected = x
    for _ in range(4):
        heard = dense @ expected @ first.t() + dense.t() @ expected @ second.t()
        own = expected @ (layer.W - layer.W.t() - layer.gamma * torch.eye(channels)).t()
        expected = expected + layer.epsilon * torch.tanh(own + heard + layer.bias)
    torch.testing.assert_close(layer(x, graph.edge_index, weight), expected)


@pytest.mark.parametrize("phi", ["sum", "gcn"])
def test_both_directions_of_an_undirected_graph_share_their_sum_of_weights(phi):
    graph = both_ways((0, 1), (1, 2), (2, 3), (3, 5))
    layer = AntiSymmetricConv(4, phi, num_iters=5, direction="both").double()
    plain = AntiSymmetricConv(4, phi, num_iters=5).double()
    state = layer.state_dict()
    parts = [state.pop(f"phi.{part}.lin.weight") for part in ("inward", "outward")]
    plain.load_state_dict({**state, "phi.lin.weight": sum(parts)})
    torch.testing.assert_close(layer(X, graph), plain(X, graph))


@covering("act, direction", ["tanh", "sigmoid", "identity"], DIRECTIONS)
@given(graph=graphs(max_nodes=4), channels=st.integers(1, 6), seed=st.integers(0, 2**16))
def test_eigenvalues_of_a_nodes_own_state_are_imaginary(graph, channels, seed, act, direction):
    """The paper's proposition: for γ = 0 and Φ = sum without self loops, whoever is heard."""
    torch.manual_seed(seed)
    keep = graph.edge_index[0] != graph.edge_index[1]
    weight = None if graph.edge_weight is None else graph.edge_weight[keep]
    options = {"gamma": 0.0, "epsilon": 1.0, "act": act, "direction": direction}
    layer = AntiSymmetricConv(channels, "sum", **options).double()
    x = graph.features(channels, seed=seed)

    def own_rate(state):
        states = torch.cat([state.unsqueeze(0), x[1:]])
        return layer.rate(states, graph.edge_index[:, keep], weight)[0]

    jacobian = torch.autograd.functional.jacobian(own_rate, x[0])
    assert torch.linalg.eigvals(jacobian).real.abs().max() < 1e-6


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_weights_per_layer_are_one_integration(direction):
    model = ADGN(4, 4, 2, num_layers=3, weight_sharing=False, direction=direction).double()
    layers = model.propagation.layers
    assert as_one_integration(layers) == list(layers)
    states = model.encode(X)
    for layer in layers:
        states = layer(states, GRAPH)
    torch.testing.assert_close(model.propagation(model.encode(X), GRAPH), states)
    torch.testing.assert_close(model.propagation.trajectory(model.encode(X), GRAPH)[-1], states)


def test_layers_of_different_directions_are_no_one_integration():
    layers = [AntiSymmetricConv(4, "sum", direction=d) for d in ("in", "out")]
    assert as_one_integration(layers) is None


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("phi", ["sum", "gat"])
def test_prepared_graphs(phi, direction):
    model = ADGN(4, 4, 2, num_layers=3, phi=phi, direction=direction).double()
    blocks = GraphBlocks(GRAPH, torch.tensor([0, 5, 6]), WEIGHT)
    selected = blocks.select(torch.tensor([1, 0]))
    out = model(X[selected.node_index], selected)
    torch.testing.assert_close(out, model(X, GRAPH, WEIGHT)[selected.node_index])


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_edges_are_turned_once_for_all_calls(direction):
    model = ADGN(4, 4, 2, num_layers=3, phi="gcn", direction=direction).double()
    model(X, GRAPH)
    before = cache_info()["misses"]
    for _ in range(3):
        model(X, GRAPH).sum().backward()
    assert cache_info()["misses"] == before


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
@covering("phi, direction", ["sum", "gcn", "gat"], DIRECTIONS)
def test_layers_compile_as_one_graph(phi, direction):
    layer = AntiSymmetricConv(4, phi, num_iters=3, direction=direction).double()
    torch._dynamo.reset()
    operations = []

    def backend(graph, _):
        operations.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    fast = torch.compile(layer, backend=backend, fullgraph=True)
    x = X.clone().requires_grad_()
    torch.testing.assert_close(
        values_and_gradients(layer, fast(x, GRAPH), x),
        values_and_gradients(layer, layer(x, GRAPH), x),
    )
    if phi != "gat":
        assert sum("adgn.integrate" in operation for operation in operations) == 1


@covering("phi, direction", ["sum", "gcn", "gat"], DIRECTIONS)
def test_exported_layers_serve_graphs_of_any_size(phi, direction):
    layer = AntiSymmetricConv(4, phi, num_iters=3, direction=direction).double()
    nodes, count = torch.export.Dim("nodes"), torch.export.Dim("edges")
    shapes = ({0: nodes}, {1: count})
    exported = torch.export.export(layer, (X, GRAPH), dynamic_shapes=shapes).module()
    larger = (torch.randn(9, 4, dtype=torch.float64), torch.cat([GRAPH, edges((8, 0), (7, 7))], 1))
    for sample in ((X, GRAPH), larger):
        torch.testing.assert_close(exported(*sample), layer(*sample))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("phi", ["sum", "gat", "gcnii"])
def test_explanations_mask_the_edges_that_were_given(phi, direction):
    """An edge whose mask is 0 is as good as not there, in whichever direction it is heard."""
    simple = edges((0, 1), (1, 2), (3, 2), (3, 3), (4, 3), (2, 4))
    layer = AntiSymmetricConv(4, phi, num_iters=3, direction=direction).double()
    unmasked = layer(X, simple)
    mask = nn.Parameter(torch.ones(6, dtype=torch.float64))
    set_masks(layer, mask, simple, apply_sigmoid=False)
    torch.testing.assert_close(layer(X, simple), unmasked)
    masked = torch.autograd.grad(layer(X, simple).sin().sum(), mask)[0]
    clear_masks(layer)
    is_loop = simple[0] == simple[1]  # normalisations bring self loops of their own
    assert (masked[~is_loop] != 0).all()
    if phi != "sum":  # normalisations are made before the mask
        return
    mask = nn.Parameter(torch.tensor([1.0, 0, 1, 1, 1, 1], dtype=torch.float64))
    set_masks(layer, mask, simple, apply_sigmoid=False)
    without = layer(X, simple)
    clear_masks(layer)
    torch.testing.assert_close(without, layer(X, simple[:, [0, 2, 3, 4, 5]]))


def test_old_weights_and_names_mean_in():
    layer = AntiSymmetricConv(4, "gcn")
    theirs = pyg.AntiSymmetricConv(4)
    assert layer.phi.direction == "in"
    assert layer.state_dict().keys() == theirs.state_dict().keys()
    assert build_model("adgn", 4, 4, 2, num_layers=2).propagation.layers[0].phi.direction == "in"


def test_a_new_draw_reaches_both_directions():
    layer = AntiSymmetricConv(4, "sum", direction="both")
    before = [p.clone() for p in layer.phi.parameters()]
    layer.reset_parameters()
    assert len(before) == 2
    assert all(not torch.equal(p, b) for p, b in zip(layer.phi.parameters(), before, strict=True))


def test_errors():
    with pytest.raises(ValueError, match=r"direction='inwards' is not known.*in, out"):
        AntiSymmetricConv(4, "sum", direction="inwards")
    with pytest.raises(ValueError, match=r"direction='out' was given together with the module phi"):
        AntiSymmetricConv(4, pyg.GCNConv(4, 4), direction="out")
    with pytest.raises(ValueError, match="direction='outward' is not valid for gcn"):
        build_model("gcn", 4, 4, 2, num_layers=2, direction="outward")
    with pytest.raises(ValueError, match="mlp has no option 'direction'"):
        build_model("mlp", 4, 4, 2, num_layers=2, direction="in")
    with pytest.raises(TypeError, match="no GraphConvolution whose graph could be turned"):
        directed(lambda: pyg.GCNConv(4, 4), "out")
    with pytest.raises(TypeError, match="a GCNConv and outward a SAGEConv"):
        BothDirections(conv.GCNConv(4, 4), conv.SAGEConv(4, 4))
    one = graph_operator(GRAPH, num_nodes=6, like=X)
    for phi in ("sum", "gat"):
        both = AntiSymmetricConv(4, phi, direction="both").double()
        with pytest.raises(ValueError, match="a SparseOperator, which has one direction"):
            both(X, one)
        plain = AntiSymmetricConv(4, phi).double()
        with pytest.raises(ValueError, match="a TwoWayOperator, for layers with direction='both'"):
            plain(X, TwoWayOperator(one, one))
    with pytest.raises(ValueError, match=r"w_neigh \[1, 4, 4\]; expected .* \[K, 8, 4\]"):
        square = torch.zeros(1, 4, 4, dtype=torch.float64)
        solve(integrate, two_way(GRAPH, 6), [square, square, square[:, 0]], 6, None, 2)
    sums = AntiSymmetricConv(4, "sum", direction="both").double()
    pair = two_way(CORNER_CASES["directed"].edge_index, 4)
    graph = CORNER_CASES["directed"].edge_index
    torch.testing.assert_close(sums(X[:4], pair), sums(X[:4], graph))
