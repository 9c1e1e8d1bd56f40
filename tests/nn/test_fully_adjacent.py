"""The fully adjacent last layer: against the dense formula, with gradients, per graph."""

import pytest
import torch

from adgn.nn import build_model

EDGES = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])


def network(**options):
    torch.manual_seed(0)
    model = build_model("gcn", 3, 4, 2, num_layers=2, fully_adjacent=True, **options)
    return model.double()


def dense_outputs(model, states):
    """Y = X W_selfᵀ + (1 1ᵀ / n) X Wᵀ + b with the n × n matrix."""
    nodes, channels = states.shape
    own, all_nodes = model.readout.weight.split(channels, dim=1)
    complete = torch.full((nodes, nodes), 1 / nodes, dtype=states.dtype)
    return states @ own.t() + complete @ states @ all_nodes.t() + model.readout.bias


def test_it_is_the_dense_formula_with_gradients():
    model = network()
    x = torch.randn(5, 3, dtype=torch.double, requires_grad=True)
    probe = torch.randn(5, 2, dtype=torch.double)
    variables = [x, *model.parameters()]
    fast = model(x, EDGES)
    dense = dense_outputs(model, model.states(x, EDGES))
    torch.testing.assert_close(fast, dense)
    gradients = [torch.autograd.grad((y * probe).sum(), variables) for y in (fast, dense)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)
    assert torch.autograd.gradcheck(lambda given: model(given, EDGES), (x,))


def test_outputs_of_nodes_differ_and_depend_on_all():
    model, x = network(), torch.randn(5, 3, dtype=torch.double, requires_grad=True)
    no_edges = torch.empty(2, 0, dtype=torch.long)
    outputs = model(x, no_edges)
    assert not torch.allclose(outputs[0], outputs[1])  # the self term
    (gradient,) = torch.autograd.grad(outputs[0].sum(), x)
    assert bool((gradient.abs().sum(1) > 0).all())


@pytest.mark.parametrize("readout", ["linear", "mlp", "linear_no_bias"])
def test_graphs_of_a_batch_do_not_hear_each_other(readout):
    model = network(readout=readout)
    first, second = torch.randn(5, 3).double(), torch.randn(4, 3).double()
    path = torch.tensor([[0, 1, 2], [1, 2, 3]])
    both = model(
        torch.cat([first, second]),
        torch.cat([EDGES, path + 5], dim=1),
        batch=torch.tensor([0] * 5 + [1] * 4),
    )
    torch.testing.assert_close(both, torch.cat([model(first, EDGES), model(second, path)]))


def test_the_readout_has_weights_for_the_node_and_for_all():
    assert network().readout.in_features == 8
    assert build_model("gcn", 3, 4, 2, num_layers=2).readout.in_features == 4


def test_it_is_for_nodes():
    with pytest.raises(ValueError, match="fully_adjacent=True has no meaning at level='graph'"):
        network(level="graph")
    with pytest.raises(ValueError, match="fully_adjacent='yes' is not valid"):
        build_model("gcn", 3, 4, 2, num_layers=2, fully_adjacent="yes")
