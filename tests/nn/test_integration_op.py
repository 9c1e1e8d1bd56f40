import copy
import gc

import pytest
import torch

from adgn.graph import graph_operator
from adgn.graph.checks import NonFiniteError
from adgn.nn import integration_op
from adgn.nn.integration import integrate
from tests.graphs import edges

EDGES = edges((0, 1), (1, 2), (2, 2), (2, 0), (0, 1))
ACTS = {"identity": None, "tanh": torch.tanh, "relu": torch.relu}


def inputs(sets=1, bias=True):
    torch.manual_seed(0)
    x = torch.randn(3, 4, dtype=torch.float64)
    w_self, w_neigh = torch.randn(2, sets, 4, 4, dtype=torch.float64)
    tensors = [x, w_self, w_neigh, torch.randn(sets, 4, dtype=torch.float64) if bias else None]
    return [t if t is None else t.requires_grad_() for t in tensors]


@pytest.mark.parametrize("memory", ["full", "checkpoint"])
@pytest.mark.parametrize(("sets", "bias"), [(1, True), (5, True), (5, False)])
@pytest.mark.parametrize("activation", ACTS)
def test_it_is_the_integration(activation, sets, bias, memory):
    tensors = inputs(sets, bias)
    settings = ("gcn", "in", 0.1, activation, 5, memory)
    operator = graph_operator(EDGES, num_nodes=3, normalization="gcn", like=tensors[0])
    expected = integrate(
        tensors[0],
        operator,
        *tensors[1:],
        epsilon=0.1,
        act=ACTS[activation],
        num_steps=5,
        memory=memory,
    )
    found, _ = integration_op.integrate_op(*tensors, EDGES, None, *settings, True)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    wanted = [t for t in tensors if t is not None]
    torch.testing.assert_close(
        torch.autograd.grad(found.sin().sum(), wanted),
        torch.autograd.grad(expected.sin().sum(), wanted),
        rtol=0,
        atol=0,
    )


@pytest.mark.parametrize("bias", [True, False])
def test_torch_finds_it_well_made(bias):
    arguments = (*inputs(3, bias), EDGES, None, "gcn", "in", 0.1, "tanh", 3, "full", True)
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(integration_op.integrate_op, arguments, test_utils=checks)
    x, *weights = [t if t is None else t.detach() for t in inputs(3, bias)]
    rest = (EDGES, None, "gcn", "in", 0.1, "tanh", 3, "full")
    backward = (torch.ones_like(x), torch.tensor([-1]), x, *weights, *rest)
    torch.library.opcheck(integration_op.integrate_backward_op, backward, test_utils=checks)


def test_what_is_kept_goes_with_the_last_states():
    before = len(integration_op._kept)
    settings = (EDGES, None, "none", "in", 0.1, "tanh", 3, "full")
    out, handle = integration_op.integrate_op(*inputs(), *settings, True)
    assert len(integration_op._kept) == before + 1
    out.sum().backward()
    del out, handle
    gc.collect()
    assert len(integration_op._kept) == before
    integration_op.integrate_op(*inputs(), *settings, False)
    assert len(integration_op._kept) == before


def test_a_lost_forward_pass_is_done_again():
    x, *weights = [t.detach() for t in inputs()]
    rest = (EDGES, None, "none", "in", 0.1, "tanh", 3, "full")
    _, handle = integration_op.integrate_op(x, *weights, *rest, True)
    grad = torch.ones_like(x)
    found = integration_op.integrate_backward_op(grad, handle, x, *weights, *rest)
    lost = copy.deepcopy(handle)
    del handle
    gc.collect()
    again = integration_op.integrate_backward_op(grad, lost, x, *weights, *rest)
    torch.testing.assert_close(found, again, rtol=0, atol=0)


def test_inputs_are_validated_when_it_runs():
    x, *weights = inputs()
    rest = (None, "none", "in", 0.1, "tanh", 3, "full", True)
    with pytest.raises(ValueError, match="out of range for 3 nodes"):
        integration_op.integrate_op(x, *weights, EDGES + 1, *rest)
    with pytest.raises(NonFiniteError, match="x"):
        integration_op.integrate_op(x.detach() * torch.nan, *weights, EDGES, *rest)
