import pytest
import torch
from torch.autograd.functional import jacobian

from adgn.graph import graph_operator
from adgn.nn import build_model
from adgn.nn.models.mpssm import LinearRecurrence, MPSSMOptions

STEPS, CHANNELS = 4, 3


def recurrence(**options):
    torch.manual_seed(2)
    return LinearRecurrence(CHANNELS, STEPS, MPSSMOptions(**options)).double()


def states():
    return torch.randn(7, CHANNELS, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def powers(matrix, weight, count):
    """A^s ⊗ W^s, the Jacobian of a state in one s steps before."""
    return torch.kron(
        torch.linalg.matrix_power(matrix, count), torch.linalg.matrix_power(weight, count)
    )


@pytest.mark.parametrize("normalization", ["gcn", "sym", "mean", "none"])
@pytest.mark.parametrize("inputs", ["every", "first"])
def test_the_jacobian_is_known_exactly(graph, inputs, normalization):
    model = recurrence(inputs=inputs, normalization=normalization)
    x = states()
    operator = graph_operator(graph.edge_index, num_nodes=7, normalization=normalization, like=x)
    matrix, weight = operator.to_dense(), model.weight[0].detach()
    once = torch.kron(torch.eye(7, dtype=torch.float64), model.input.weight.detach())
    first = range(STEPS + 1) if inputs == "every" else [STEPS]
    expected = sum(powers(matrix, weight, count) for count in first) @ once
    found = jacobian(lambda x: model(x, graph.edge_index), x).reshape(21, 21)
    torch.testing.assert_close(found, expected)
    last = model.trajectory(x, graph.edge_index)[-1]
    torch.testing.assert_close(last, model(x, graph.edge_index))


def test_an_activation_between_the_hops_breaks_it(graph):
    """What makes the Jacobian known is that nothing lies between the hops."""
    model, x = recurrence(inputs="first"), states()
    operator = graph_operator(graph.edge_index, num_nodes=7, normalization="gcn", like=x)
    weight = model.weight[0].detach()

    def with_tanh(x):
        x = model.input(x)
        for _ in range(STEPS):
            x = torch.tanh(operator @ (x @ weight.t()))
        return x

    once = torch.kron(torch.eye(7, dtype=torch.float64), model.input.weight.detach())
    expected = powers(operator.to_dense(), weight, STEPS) @ once
    found = jacobian(with_tanh, x).reshape(21, 21)
    assert (found - expected).abs().max() > 0.01 * expected.abs().max()


def test_weights_begin_orthogonal():
    weight = recurrence().weight[0]
    torch.testing.assert_close(weight @ weight.t(), torch.eye(CHANNELS, dtype=torch.float64))


@pytest.mark.parametrize("inputs", ["every", "first"])
@pytest.mark.parametrize("direction", ["in", "both"])
def test_checkpoints_change_nothing(graph, inputs, direction):
    found = []
    for memory in ("full", "checkpoint"):
        model = recurrence(inputs=inputs, memory=memory, direction=direction)
        out = model(states(), graph.edge_index)
        out.square().sum().backward()
        found.append([out, *(p.grad for p in model.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_both_directions_add_up(graph):
    model, x = recurrence(direction="both", inputs="first", normalization="none"), states()
    matrix = graph_operator(graph.edge_index, num_nodes=7, like=x).to_dense()
    expected = model.input(x)
    for _ in range(STEPS):
        one, other = (expected @ weight.t() for weight in model.weight)
        expected = matrix @ one + matrix.t() @ other
    torch.testing.assert_close(model(x, graph.edge_index), expected)


def test_blocks_follow_one_another(graph):
    model = build_model("mpssm", 3, 4, 2, 2, blocks=2, block_residual=True).double()
    x = model.encode(graph.x)
    for block in model.propagation.blocks:
        x = x + block.mlp(block.steps(x, graph.edge_index))
    torch.testing.assert_close(model(graph.x, graph.edge_index), model.readout(x))
