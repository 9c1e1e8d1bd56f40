import pytest
import torch

from adgn.graph import graph_operator
from adgn.nn.models.diffusion import Diffusion


class Powers(Diffusion):
    """One application of the operator per step, after the activation."""

    def steps(self, x, operator):
        x = self.activate(x)
        for _ in range(self.num_layers):
            x = operator @ x
            yield x


def by_hand(graph, normalization, steps, weighted):
    """The dense operator, applied again and again."""
    weight = graph.edge_weight if weighted else None
    operator = graph_operator(
        graph.edge_index, weight, num_nodes=7, normalization=normalization, like=graph.x
    )
    dense = operator @ torch.eye(7, dtype=torch.float64)
    return torch.linalg.matrix_power(dense, steps) @ torch.relu(graph.x)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalization", ["none", "gcn"])
def test_applies_the_operator_as_often_as_asked(graph, normalization, weighted):
    module = Powers(4, normalization, "relu")
    weights = (graph.edge_weight,) if weighted else ()
    torch.testing.assert_close(
        module(graph.x, graph.edge_index, *weights), by_hand(graph, normalization, 4, weighted)
    )


def test_the_trajectory_ends_in_the_output(graph):
    module = Powers(4, "gcn", "relu")
    states = module.trajectory(graph.x, graph.edge_index, graph.edge_weight)
    assert len(states) == 5
    assert torch.equal(states[0], graph.x)
    for number in (1, 2, 3, 4):
        torch.testing.assert_close(states[number], by_hand(graph, "gcn", number, True))
    assert torch.equal(states[-1], module(graph.x, graph.edge_index, graph.edge_weight))


def test_without_an_activation_steps_are_linear(graph):
    module = Powers(2, "gcn", None)
    forth, back = (module(sign * graph.x, graph.edge_index) for sign in (1, -1))
    torch.testing.assert_close(forth, -back)
    assert forth.lt(0).any()


def test_settings_are_shown():
    assert repr(Powers(4, "gcn", None)) == "Powers(num_layers=4, normalization='gcn')"


def test_an_unknown_activation_is_named():
    with pytest.raises(ValueError, match=r"act='tahn' is not known. Did you mean 'tanh'"):
        Powers(4, "gcn", "tahn")


def test_a_diffusion_must_say_what_its_steps_are():
    with pytest.raises(TypeError, match=r"abstract.*steps"):
        Diffusion(2, "gcn", "relu")
