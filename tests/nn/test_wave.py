"""Waves: the kernels against the plain loop, and what symplectic Euler keeps."""

import pytest
import torch

from adgn.graph import TwoWayOperator, graph_operator, set_backend
from adgn.nn.wave import (
    integrate_wave,
    linear_acceleration,
    wave_energy,
    wave_states,
    wave_steps,
)


@pytest.fixture
def serving():
    """Sets the backend, and sets it back."""
    yield set_backend
    set_backend("auto")


def problem(nodes=23, channels=5, both=False, dtype=torch.float64, normalization="sym"):
    generator = torch.Generator().manual_seed(3)
    edges = torch.randint(0, nodes, (2, 3 * nodes), generator=generator)

    def draw(*shape):
        return torch.randn(*shape, dtype=dtype, generator=generator).requires_grad_()

    x, v = draw(nodes, channels), draw(nodes, channels)
    ways = ("in", "out") if both else ("in",)
    operators = [
        graph_operator(
            edges, num_nodes=nodes, normalization=normalization, direction=way, like=x.detach()
        )
        for way in ways
    ]
    operator = TwoWayOperator(*operators) if both else operators[0]
    return x, v, operator, draw(channels, channels), draw(len(ways) * channels, channels)


def values_and_gradients(inputs, memory="full"):
    x, v, operator, w_self, w_neigh = inputs
    last, moved = integrate_wave(
        x, v, operator, w_self, w_neigh, epsilon=0.2, num_steps=7, memory=memory
    )
    loss = last.square().sum() + moved.sin().sum()
    return [last, moved, *torch.autograd.grad(loss, (x, v, w_self, w_neigh))]


@pytest.mark.parametrize("memory", ["full", "checkpoint"])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("normalization", ["sym", "laplacian"])
def test_the_kernels_are_the_plain_loop(serving, both, normalization, memory):
    inputs = problem(both=both, normalization=normalization)
    serving("native")
    native = values_and_gradients(inputs, memory)
    serving("torch")
    for one, other in zip(native, values_and_gradients(inputs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_gradients_and_their_gradients():
    x, v, operator, w_self, w_neigh = problem(nodes=4, channels=2)

    def last(x, v, w_self, w_neigh):
        return integrate_wave(x, v, operator, w_self, w_neigh, epsilon=0.2, num_steps=3)

    assert torch.autograd.gradcheck(last, (x, v, w_self, w_neigh))
    assert torch.autograd.gradgradcheck(last, (x, v, w_self, w_neigh))


def test_what_the_kernels_cannot_do_is_said(serving):
    x, v, operator, w_self, w_neigh = problem()
    serving("native")
    with pytest.raises(RuntimeError, match="cannot serve states of more than two dimensions"):
        integrate_wave(
            x.expand(2, -1, -1), v.expand(2, -1, -1), operator, w_self, w_neigh,
            epsilon=0.1, num_steps=2,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"v": torch.zeros(2, 5)}, r"v \[2, 5\] and the operator \[23, 23\]"),
        ({"w_self": torch.zeros(4, 5)}, r"w_self has shape \[4, 5\].*expected \[5, 5\]"),
        ({"num_steps": 0}, "num_steps=0"),
        ({"memory": "some"}, "memory='some'"),
    ],
)
def test_wrong_arguments(change, message):
    names = ("x", "v", "operator", "w_self", "w_neigh")
    given = dict(zip(names, problem(dtype=torch.float32), strict=True))
    with pytest.raises(ValueError, match=message):
        integrate_wave(**{**given, "epsilon": 0.1, "num_steps": 2, **change})


def test_the_discrete_energy_is_kept_exactly_and_only_by_a_symmetric_acceleration():
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(6, 6, dtype=torch.float64, generator=generator)
    x, v = torch.randn(2, 1, 6, dtype=torch.float64, generator=generator)

    def drift(matrix, epsilon, steps):
        states = [
            (x, v),
            *wave_states(lambda x, _: -x @ matrix.t(), x, v, epsilon, steps),
        ]
        kept = torch.stack([wave_energy(a, b, -a @ matrix.t(), epsilon) for a, b in states])
        plain = torch.stack([wave_energy(a, b, -a @ matrix.t()) for a, b in states])
        return [((e - e[0]).abs().max() / e[0]).item() for e in (kept, plain)]

    stiff = root @ root.t() / 6
    exact, plain = drift(stiff, 0.05, 10_000)
    assert exact < 1e-11
    assert 1e-4 < plain < 0.2  # bounded, of the order of the step
    # On a path so short that the first-order drift shows: half the step, half the drift.
    assert 1.7 < plain / drift(stiff, 0.025, 10_000)[1] < 2.3
    skewed = stiff + 0.1 * (root - root.t())
    assert drift(skewed, 0.05, 1000)[0] > 0.1


def test_steps_with_checkpoints_are_the_same():
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    field = torch.nn.Linear(2, 2).double()

    def acceleration(x, v):
        return torch.tanh(field(x)) - 0.1 * v

    found = []
    for memory in ("full", "checkpoint"):
        last, moved = wave_steps(acceleration, x, x, 0.3, 10, memory, [field])
        found.append([last, *torch.autograd.grad((last + moved).sum(), (x, field.weight))])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_the_linear_acceleration_is_its_formula():
    x, _, operator, w_self, w_neigh = problem()
    expected = x @ w_self.t() + operator.to_dense() @ x @ w_neigh.t()
    torch.testing.assert_close(linear_acceleration(x, operator, w_self, w_neigh), expected)
