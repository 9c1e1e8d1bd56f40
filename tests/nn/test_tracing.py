"""Layers and networks under torch's compilers and tracers."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric import EdgeIndex

from adgn.graph import GraphBlocks, graph_operator
from adgn.nn import ADGN, AntiSymmetricConv, available_models, build_model
from tests.crossing import exhaustive
from tests.graphs import edges

GRAPH = edges((0, 1), (1, 2), (2, 3), (3, 0), (3, 3), (0, 1), (0, 0))
PHIS = {
    "sum": {},
    "gcn": {},
    "gat": {"heads": 2},
    "gcnii": {},
    "ggnn": {},
    "gin": {},
    "graphsage": {},
    "gine": {"edge_dim": 3},
    "gat with edge features": {"edge_dim": 3},
}
EVERY_PHI = pytest.mark.parametrize("phi", PHIS)
# A solver chooses its steps by what it sees; pairs two hops apart depend on the graph.
INTERRUPTING = {"grand", "h2gcn"}
EVERY_NETWORK = pytest.mark.parametrize(
    "name", sorted(set(available_models()) - INTERRUPTING - {"geomgcn"})
)
TRACE = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
# Dynamo itself looks at the gradients of tensors that have none.
COMPILE = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")


class WithFeatures(nn.Module):
    """A layer called with positional arguments alone."""

    def __init__(self, phi: str, **options) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = AntiSymmetricConv(8, phi.split()[0], 2, phi_kwargs=PHIS[phi], **options)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        given = {} if edge_attr is None else {"edge_attr": edge_attr}
        return self.conv(x, edge_index, **given)


def example(phi: str, nodes: int = 4, graph: Tensor = GRAPH) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(nodes)
    x = torch.randn(nodes, 8, generator=generator)
    features = torch.randn(graph.size(1), 3, generator=generator)
    return (x, graph, features) if "edge_dim" in PHIS[phi] else (x, graph)


def other_example(phi: str) -> tuple[Tensor, ...]:
    return example(phi, 6, edges((5, 0), (0, 5), (2, 2), (4, 1), (1, 4), (4, 1), (3, 4), (1, 1)))


def compiled(module, backend="aot_eager"):
    torch._dynamo.reset()
    return torch.compile(module, backend=backend, fullgraph=True)


def gradients(layer: nn.Module, module: nn.Module, *inputs) -> tuple[Tensor, list[Tensor]]:
    x, *others = inputs
    x = x.clone().requires_grad_()
    output = layer(x, *others)
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    return output, torch.autograd.grad(output.sin().sum(), [x, *trained])


@EVERY_PHI
def test_exported_layers_are_plain_torch_for_graphs_of_any_size(phi):
    layer, inputs = WithFeatures(phi), example(phi)
    nodes, count = torch.export.Dim("nodes"), torch.export.Dim("edges")
    shapes = ({0: nodes}, {1: count}, {0: count})[: len(inputs)]
    exported = torch.export.export(layer, inputs, dynamic_shapes=shapes)
    assert not [node for node in exported.graph.nodes if "adgn" in str(node.target)]
    for sample in (inputs, other_example(phi)):
        torch.testing.assert_close(exported.module()(*sample), layer(*sample))


@TRACE
@EVERY_PHI
def test_traced_layers_serve_graphs_of_any_size(phi, tmp_path):
    layer = WithFeatures(phi)
    torch.jit.trace(layer, example(phi)).save(tmp_path / "layer.pt")
    traced = torch.jit.load(tmp_path / "layer.pt")
    for sample in (example(phi), other_example(phi)):
        torch.testing.assert_close(traced(*sample), layer(*sample))


@EVERY_PHI
def test_layers_on_meta_tensors(phi):
    layer, inputs = WithFeatures(phi).to("meta"), [t.to("meta") for t in example(phi)]
    output, grads = gradients(layer, layer, *inputs)
    assert output.is_meta
    assert output.shape == inputs[0].shape
    assert [g.shape for g in grads[1:]] == [p.shape for p in layer.parameters()]


@COMPILE
@EVERY_PHI
def test_layers_compile_as_one_graph(phi):
    layer, inputs = WithFeatures(phi), example(phi)
    output, grads = gradients(compiled(layer), layer, *inputs)
    expected, expected_grads = gradients(layer, layer, *inputs)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(grads, expected_grads)


@COMPILE
@pytest.mark.parametrize("memory", ["full", "checkpoint"])
def test_the_compiled_integration_is_one_operation(memory):
    operations = []

    def backend(graph, _):
        operations.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    layer = AntiSymmetricConv(8, "sum", num_iters=20, memory=memory)
    torch._dynamo.reset()
    fast = torch.compile(layer, backend=backend, fullgraph=True)
    x, graph = example("sum")
    torch.testing.assert_close(fast(x, graph), layer(x, graph), rtol=0, atol=0)
    assert sum("adgn.integrate" in operation for operation in operations) == 1
    with pytest.raises(ValueError, match="out of range for 4 nodes"):
        fast(x, graph + 1)


@COMPILE
def test_compiled_layers_learn_edge_weights_and_take_an_edge_index():
    layer = AntiSymmetricConv(8, "gcn", num_iters=2)
    x, graph = example("gcn")
    weight = torch.linspace(0.5, 1.5, 7).requires_grad_()
    fast = compiled(layer)
    found = torch.autograd.grad(fast(x, graph, weight).sum(), weight)
    torch.testing.assert_close(found, torch.autograd.grad(layer(x, graph, weight).sum(), weight))
    given = EdgeIndex(graph, sparse_size=(4, 4))
    torch.testing.assert_close(fast(x, given), layer(x, given))


@COMPILE
@pytest.mark.parametrize("form", ["operator", "matrix", "blocks"])
def test_other_graphs_may_interrupt_the_compiled_graph(form):
    x, graph = example("gcn")
    given = {
        "operator": graph_operator(graph, num_nodes=4, normalization="gcn"),
        "matrix": torch.sparse_coo_tensor(graph.flip(0), torch.ones(7), (4, 4)).to_sparse_csr(),
        "blocks": GraphBlocks(graph, torch.tensor([0, 4])).select(torch.tensor([0])),
    }[form]
    layer = AntiSymmetricConv(8, "gcn", num_iters=2)
    torch._dynamo.reset()
    fast = torch.compile(layer, backend="eager")
    torch.testing.assert_close(fast(x, given), layer(x, given))


@TRACE
def test_a_sparse_matrix_is_not_traced():
    x, graph = example("gcn")
    matrix = torch.sparse_coo_tensor(graph.flip(0), torch.ones(7), (4, 4))
    with pytest.raises(ValueError, match=r"cannot be traced or exported; pass a \[2, E\]"):
        torch.jit.trace(AntiSymmetricConv(8), (x, matrix))


@pytest.mark.long
@COMPILE
@TRACE
@EVERY_NETWORK
def test_networks_compile_export_and_trace(name, monkeypatch):
    """As one graph; that its gradients compile too is tested for every layer."""
    for count in ("_BEFORE", "_AVERAGED"):  # of GESN: compilers unroll the loop over all products
        monkeypatch.setattr(f"adgn.graph.spectrum.{count}", 2)
    model, (x, graph) = build_model(name, 8, 4, 2, 2).eval(), example("sum")
    expected = model(x, graph)
    torch.testing.assert_close(compiled(model, backend="eager")(x, graph), expected)
    torch.testing.assert_close(torch.export.export(model, (x, graph)).module()(x, graph), expected)
    torch.testing.assert_close(torch.jit.trace(model, (x, graph))(x, graph), expected)


@exhaustive
@COMPILE
@EVERY_NETWORK
def test_networks_compile_with_their_gradients(name):
    model, inputs = build_model(name, 8, 4, 2, 2).eval(), example("sum")
    found, expected = (gradients(one, model, *inputs) for one in (compiled(model), model))
    torch.testing.assert_close(found, expected)


@TRACE
def test_a_model_that_embeds_the_graph_cannot_be_traced():
    model, (x, graph) = build_model("geomgcn", 8, 4, 2, 2), example("sum")
    with pytest.raises(ValueError, match=r"Geom-GCN places the nodes .* cannot be traced"):
        torch.jit.trace(model, (x, graph))


@COMPILE
@pytest.mark.parametrize("name", sorted(INTERRUPTING))
def test_some_networks_interrupt_the_compiled_graph(name):
    model, (x, graph) = build_model(name, 8, 4, 2, 2), example("sum")
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(model, backend="eager")(x, graph), model(x, graph))


@TRACE
def test_pairs_of_nodes_cannot_be_traced():
    model, inputs = build_model("h2gcn", 8, 4, 2, 2), example("sum")
    for trace in (torch.jit.trace, torch.export.export):
        with pytest.raises(ValueError, match="depend on the graph, so this model cannot be traced"):
            trace(model, inputs)


@COMPILE
@TRACE
def test_random_walks_cannot_be_traced():
    model, inputs = build_model("pathgcn", 8, 4, 2, 2), example("sum")
    with pytest.raises(ValueError, match=r"cannot be traced.*call model.eval\(\) first"):
        torch.jit.trace(model, inputs)


@COMPILE
def test_weights_per_layer_and_graph_level():
    model = ADGN(8, 8, 2, 3, weight_sharing=False, level="graph")
    x, graph = example("sum")
    batch = torch.tensor([0, 0, 1, 1])
    expected = model(x, graph, batch=batch)
    torch.testing.assert_close(compiled(model)(x, graph, batch=batch), expected)
    given = {"batch": batch, "batch_size": 2}
    exported = torch.export.export(model, (x, graph), given)
    torch.testing.assert_close(exported.module()(x, graph, **given), expected)


@COMPILE
def test_a_user_phi_compiles_as_in_pyg():
    layer = AntiSymmetricConv(8, pyg.GCNConv(8, 8), num_iters=2)
    x, graph = example("gcn")
    torch.testing.assert_close(compiled(layer)(x, graph), layer(x, graph))


@COMPILE
def test_autocast_inside_compiled_layers():
    layer, (x, graph) = AntiSymmetricConv(8, "gcn"), example("gcn")
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(compiled(layer)(x, graph), layer(x, graph))
