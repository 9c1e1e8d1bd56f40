"""Steps on a rank's part of a graph: rows are computed while others are under way."""

import pytest
import torch

from adgn.graph import PartitionedGraph, cut_part, graph_operator
from adgn.graph.native import part_calls
from adgn.graph.native.library import load_library
from adgn.nn import halo_stepper
from adgn.nn.integration import integrate
from adgn.nn.integration_run import Run
from adgn.nn.steppers import Weights
from tests.helpers.rank_threads import on_ranks

pytestmark = pytest.mark.skipif(isinstance(load_library(), str), reason="no native kernels")
NODES, STEPS = 60, 4
ACTS = {"tanh": torch.tanh, "relu": torch.relu, "identity": None}
RING = torch.stack([torch.arange(NODES), (torch.arange(NODES) + 1) % NODES])
EDGES = torch.cat([RING, RING.flip(0)], dim=1)
CASES = {  # edges, and the owner of each node
    "a few rows wait": (EDGES, torch.arange(NODES) // 30),
    "all rows wait": (EDGES, torch.arange(NODES) % 2),
    "nothing is exchanged": (EDGES[:, :0], torch.arange(NODES) % 2),
    "a rank has no node": (EDGES, torch.arange(NODES) // 30 * 2),
    "rank 0 sends alone": (RING[:, :-1], torch.arange(NODES) // 30),
}


def weights(channels, dtype, sets):
    generator = torch.Generator().manual_seed(1)
    shapes = ((sets, channels, channels), (sets, channels, channels), (sets, channels))
    return [torch.randn(*shape, generator=generator, dtype=dtype) / 4 for shape in shapes]


def results(case, act, channels, dtype=torch.double, sets=1, inner=None, memory="full"):
    """Of each rank: its nodes, states, and the gradients in states and weights.

    `inner` says which rows of a rank are computed before others arrive; by default all that can.
    """
    edges, owner = CASES[case]
    size = int(owner.max()) + 1
    x = torch.randn(NODES, channels, generator=torch.Generator().manual_seed(0), dtype=dtype)

    def work(rank, exchange):
        part = PartitionedGraph(cut_part(edges, None, owner, rank, size), exchange)
        operator = part.operator("none", dtype)
        if inner is not None:
            operator.__dict__ |= {"without_halo": inner, "without_sent": inner}
        inputs = [x[part.nodes], *weights(channels, dtype, sets)]
        for tensor in inputs:
            tensor.requires_grad_()
        kind = {"epsilon": 0.1, "act": ACTS[act], "num_steps": STEPS, "memory": memory}
        states = integrate(inputs[0], operator, *inputs[1:], **kind)
        return part.nodes, states.detach(), torch.autograd.grad(states.pow(2).sum(), inputs)

    return x, on_ranks(size, work)


def test_the_case_of_one_sender_is_one():
    edges, owner = CASES["rank 0 sends alone"]

    def work(rank, exchange):
        part = PartitionedGraph(cut_part(edges, None, owner, rank, 2), exchange)
        halo = part.operator("none", torch.double).halo
        return halo.size, halo.sent.numel()

    assert on_ranks(2, work) == [(0, 1), (1, 0)]


@pytest.mark.parametrize("memory", ["full", "checkpoint"])
@pytest.mark.parametrize("sets", [1, STEPS], ids=["shared", "own weights"])
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("case", CASES)
def test_states_and_gradients_are_those_of_the_whole_graph(case, act, sets, memory):
    channels = 8 if sets == 1 else 5  # with and without padding
    x, ranks = results(case, act, channels, sets=sets, memory=memory)
    x.requires_grad_()
    given = [tensor.requires_grad_() for tensor in weights(channels, x.dtype, sets)]
    operator = graph_operator(CASES[case][0], num_nodes=NODES, like=x)
    states = integrate(x, operator, *given, epsilon=0.1, act=ACTS[act], num_steps=STEPS)
    grad_x, *grads = torch.autograd.grad(states.pow(2).sum(), [x, *given])
    close = {"rtol": 1e-12, "atol": 1e-12}
    for nodes, found, (grad, *_) in ranks:
        torch.testing.assert_close(found, states.detach()[nodes], **close)
        torch.testing.assert_close(grad, grad_x[nodes], **close)
    for place, grad in enumerate(grads, start=1):
        torch.testing.assert_close(sum(rank[2][place] for rank in ranks), grad, **close)


@pytest.mark.parametrize("threads", [1, 2])
def test_ranges_of_rows_that_are_several_parts(threads):
    nodes, channels = 6000, 64
    generator = torch.Generator().manual_seed(0)
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    edges = torch.cat([ring, torch.randint(0, nodes // 2, (2, 6 * nodes), generator=generator)], 1)
    owner = torch.arange(nodes) // (nodes // 2)
    x = torch.randn(nodes, channels, generator=generator, dtype=torch.double)

    def work(rank, exchange):
        torch.set_num_threads(threads)  # each thread has its own number
        part = PartitionedGraph(cut_part(edges, None, owner, rank, 2), exchange)
        inputs = [x[part.nodes], *weights(channels, x.dtype, 1)]
        for tensor in inputs:
            tensor.requires_grad_()
        states = integrate(
            inputs[0],
            part.operator("none", x.dtype),
            *inputs[1:],
            epsilon=0.1,
            act=torch.tanh,
            num_steps=2,
        )
        return part.nodes, states.detach(), torch.autograd.grad(states.sum(), inputs)

    before = torch.get_num_threads()
    try:
        ranks = on_ranks(2, work)
    finally:
        torch.set_num_threads(before)
    given = [tensor.requires_grad_() for tensor in (x, *weights(channels, x.dtype, 1))]
    operator = graph_operator(edges, num_nodes=nodes, like=x)
    states = integrate(given[0], operator, *given[1:], epsilon=0.1, act=torch.tanh, num_steps=2)
    grads = torch.autograd.grad(states.sum(), given)
    for part_nodes, found, (grad, *_) in ranks:
        torch.testing.assert_close(found, states.detach()[part_nodes], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(grad, grads[0][part_nodes], rtol=1e-11, atol=1e-11)
    for place in (1, 2, 3):
        total = sum(rank[2][place] for rank in ranks)
        torch.testing.assert_close(total, grads[place], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("act", ["tanh", "relu"])
@pytest.mark.parametrize("case", CASES)
def test_rows_are_the_same_before_others_arrive_and_after(case, act, dtype):
    """With the overlap and without, where all rows wait: bit for bit, but for sums over rows."""
    kind = (case, act, 16, dtype)
    (_, overlapped), (_, waiting) = results(*kind), results(*kind, inner=0)
    for one, other in zip(overlapped, waiting, strict=True):
        assert one[1].equal(other[1])  # states
        assert one[2][0].equal(other[2][0])  # their gradients
        for gradient, expected in zip(one[2][1:], other[2][1:], strict=True):
            torch.testing.assert_close(gradient, expected)


class Recorded:
    """An exchange that writes down when it begins and when it is waited for."""

    def __init__(self, exchange, events):
        self.exchange, self.events = exchange, events

    def send(self, rows, out, into, place=None):
        self.events.append("send")
        received = self.exchange.send(rows, out, into, place)

        def wait():
            self.events.append("wait")
            return received()

        return wait


def test_rows_without_a_halo_are_computed_between_send_and_wait(monkeypatch):
    edges, owner = CASES["a few rows wait"]
    events, forward, step = {0: [], 1: []}, halo_stepper.step_forward, part_calls.BackwardSteps.step

    def recorded_forward(library, problem, number, rows, *arrays):
        events[int(arrays[0][0, -1])].append(rows)
        forward(library, problem, number, rows, *arrays)

    def recorded_back(self, number, rows, before=None):
        events[int(self._kept[2][0, -1])].append(rows)
        step(self, number, rows, before)

    monkeypatch.setattr(halo_stepper, "step_forward", recorded_forward)
    monkeypatch.setattr(part_calls.BackwardSteps, "step", recorded_back)
    channels = 8

    def work(rank, exchange):
        operator = PartitionedGraph(
            cut_part(edges, None, owner, rank, 2), Recorded(exchange, events[rank])
        ).operator("none", torch.double)
        x = torch.zeros(30, channels, dtype=torch.double)
        x[:, -1] = rank  # says whose states they are, in the first step
        given = Weights(*(torch.zeros_like(w) for w in weights(channels, x.dtype, 1)))
        run = Run.plan(x, operator, given, 0.0, "tanh", STEPS, "full")
        states, kept = run.forward(x, given, keep=True)
        run.backward(states, given, kept, given.zeros())

    on_ranks(2, work)
    for found in events.values():
        assert found == ["send", (0, 28), "wait", (28, 30)] * 2 * STEPS


def test_nodes_without_an_edge_to_another_rank_come_first():
    edges, owner = CASES["a few rows wait"]
    part = PartitionedGraph(cut_part(edges, None, owner, 1, 2), None)
    assert part.nodes.tolist() == [*range(31, 59), 30, 59]
    numbers = torch.tensor([59, 3, 30, 31])
    own, rows = part.rows_of(numbers)
    assert own.tolist() == [True, False, True, True]
    assert part.nodes[rows].tolist() == [59, 30, 31]
