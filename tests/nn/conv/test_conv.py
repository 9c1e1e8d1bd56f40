import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric import EdgeIndex

from adgn.nn import conv as ours

PAIRS = {
    "gcn": (lambda: ours.GCNConv(4, 5), lambda: pyg.GCNConv(4, 5)),
    "gcn-no-bias": (lambda: ours.GCNConv(4, 5, bias=False), lambda: pyg.GCNConv(4, 5, bias=False)),
    "graphsage": (lambda: ours.SAGEConv(4, 5), lambda: pyg.SAGEConv(4, 5)),
    "gin": (lambda: ours.GINConv(4, 5), lambda: pyg.GINConv(nn.Linear(4, 5), train_eps=True)),
    "gat": (lambda: ours.GATConv(4, 6, heads=2), lambda: pyg.GATConv(4, 3, heads=2)),
    "ggnn": (lambda: ours.GatedGraphConv(4, 2), lambda: pyg.GatedGraphConv(4, 2)),
}
FORMS = {
    "edge list": lambda edges: edges,
    "32 bit": lambda edges: edges.int(),
    "EdgeIndex": lambda edges: EdgeIndex(edges, sparse_size=(6, 6)),
    "sparse": lambda edges: torch.sparse_coo_tensor(
        edges.flip(0), torch.ones(9, dtype=torch.float64), (6, 6)
    ).to_sparse_csr(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PAIRS)
def test_equals_pyg_for_every_form_of_graph(x, edge_index, name, form):
    ours_conv, theirs_conv = (make().double() for make in PAIRS[name])
    theirs_conv.load_state_dict(ours_conv.state_dict())
    torch.testing.assert_close(ours_conv(x, FORMS[form](edge_index)), theirs_conv(x, edge_index))


@pytest.mark.parametrize("name", PAIRS)
def test_starts_as_pyg_does(name):
    """The same random draws in the same order."""
    states = []
    for make in PAIRS[name]:
        torch.manual_seed(4)
        states.append(make().state_dict())
    assert states[0].keys() == states[1].keys()
    for key, value in states[0].items():
        assert torch.equal(value, states[1][key]), key


@pytest.mark.parametrize("name", PAIRS)
def test_nodes_without_edges(x, name):
    out = PAIRS[name][0]().double()(x, torch.empty(2, 0, dtype=torch.long))
    assert out.isfinite().all()
