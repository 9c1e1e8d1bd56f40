"""The integration by the native kernels, by torch, and by the plain loop: one result."""

import re
from contextlib import nullcontext
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.autograd import forward_ad, gradcheck, gradgradcheck

from adgn.graph import (
    CSR,
    GraphBlocks,
    SparseOperator,
    SparsePattern,
    backend,
    graph_operator,
    set_backend,
)
from adgn.nn import ADGN
from adgn.nn.base import known_activation
from adgn.nn.integration import integrate
from adgn.nn.integration_run import integrate_reference
from tests.crossing import covering
from tests.graph.test_kernels import LAZY, lazy, worked_out

ACTS = {"tanh": torch.tanh, "relu": torch.relu, "identity": None}
MEMORIES = ("full", "checkpoint")
on_native = pytest.mark.skipif(
    backend().name == "torch", reason=f"native kernels not in use: {backend().reason}"
)
BACKENDS = [pytest.param("native", marks=on_native), "torch"]
shared_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def one_thread():
    """Thousands of tiny products: on a busy machine each would wait for a second thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@dataclass(frozen=True)
class Problem:
    x: torch.Tensor
    operator: SparseOperator
    w_self: torch.Tensor
    w_neigh: torch.Tensor
    bias: torch.Tensor | None
    epsilon: float
    act: object
    num_steps: int

    def leaves(self):
        return [t for t in (self.x, self.w_self, self.w_neigh, self.bias) if t is not None]

    def to(self, dtype):
        pattern = self.operator.pattern
        bias = None if self.bias is None else self.bias.to(dtype)
        return replace(
            self,
            x=self.x.to(dtype),
            operator=SparseOperator(pattern, self.operator.value.to(dtype)),
            w_self=self.w_self.to(dtype),
            w_neigh=self.w_neigh.to(dtype),
            bias=bias,
        )

    def run(self, function=integrate, **options):
        return function(
            self.x,
            self.operator,
            self.w_self,
            self.w_neigh,
            self.bias,
            epsilon=self.epsilon,
            act=self.act,
            num_steps=self.num_steps,
            **options,
        )

    def solve(self, function=integrate, **options):
        """The result and all gradients of a fixed function of it."""
        leaves = [t.detach().clone().requires_grad_() for t in self.leaves()]
        names = ("x", "w_self", "w_neigh", "bias")
        problem = replace(self, **dict(zip(names, leaves, strict=False)))
        result = problem.run(function, **options)
        pull = torch.linspace(-1, 1.7, result.numel(), dtype=result.dtype).view_as(result)
        return [result.detach(), *torch.autograd.grad((result * pull).sum(), leaves)]


def random_problem(
    nodes=12, edges=40, channels=5, steps=6, act="tanh", shared=True, bias=True, weighted=False,
    normalization="none", symmetric=False, dtype=torch.float64, seed=0, blocks=None,
):  # fmt: skip
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(0, nodes, (2, edges), generator=generator)
    if symmetric:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    weight = None
    if weighted:
        weight = torch.rand(edge_index.size(1), generator=generator, dtype=dtype)
    if blocks is None:
        like = torch.empty(0, dtype=dtype)
        operator = graph_operator(
            edge_index, weight, num_nodes=nodes, normalization=normalization, like=like
        )
    else:
        operator = blocks.operator(normalization, dtype)
        nodes = blocks.num_nodes
    sets = 1 if shared else steps
    scale = 0.5 / channels**0.5
    draw = torch.randn(sets, 2, channels, channels, generator=generator, dtype=dtype) * scale
    offset = torch.randn(sets, channels, generator=generator, dtype=dtype) if bias else None
    x = torch.randn(nodes, channels, generator=generator, dtype=dtype)
    return Problem(
        x, operator, draw[:, 0].contiguous(), draw[:, 1] / 4, offset, 0.1, ACTS[act], steps
    )


def small_graphs(count=9, seed=0):
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(1, 12, (count,), generator=generator)
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), sizes.cumsum(0)])
    edges = [
        torch.randint(0, int(size), (2, int(3 * size)), generator=generator) + first
        for size, first in zip(sizes, ptr, strict=False)
    ]
    return GraphBlocks(torch.cat(edges, dim=1), ptr)


problems = st.builds(
    random_problem,
    nodes=st.sampled_from([1, 2, 5, 6, 7, 19, 48, 49, 101]),
    edges=st.sampled_from([0, 1, 30, 200]),
    channels=st.sampled_from([1, 2, 7, 8, 9, 16, 17, 30, 33, 64, 65]),
    steps=st.sampled_from([1, 2, 5, 16, 17, 33]),
    act=st.sampled_from(list(ACTS)),
    shared=st.booleans(),
    bias=st.booleans(),
    weighted=st.booleans(),
    normalization=st.sampled_from(["none", "gcn"]),
    symmetric=st.booleans(),
    seed=st.integers(0, 2**31),
)
block_problems = st.builds(
    lambda graphs, count, order, **options: random_problem(
        blocks=small_graphs(count, graphs).select(
            torch.randperm(count, generator=torch.Generator().manual_seed(order))
        ),
        **options,
    ),
    graphs=st.integers(0, 1000),
    count=st.integers(3, 20),
    order=st.integers(0, 1000),
    channels=st.sampled_from([1, 8, 17, 30]),
    steps=st.sampled_from([1, 4, 17]),
    act=st.sampled_from(list(ACTS)),
    shared=st.booleans(),
    bias=st.booleans(),
    normalization=st.sampled_from(["none", "gcn"]),
    seed=st.integers(0, 2**31),
)


def assert_same(result, expected, tolerance):
    """Entry by entry, relative to the largest entry of each tensor."""
    for found, wanted in zip(result, expected, strict=True):
        assert found.shape == wanted.shape and found.dtype == wanted.dtype
        scale = wanted.abs().max() if wanted.numel() else torch.ones(())
        assert (found - wanted).abs().le(tolerance * scale + 1e-300).all()


def plain(problem, memory="full"):
    return problem.solve(integrate_reference)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("serving", BACKENDS)
@given(problem=problems)
def test_values_and_gradients_are_those_of_the_plain_loop(serving, memory, problem):
    with set_backend(serving):
        assert_same(problem.solve(memory=memory), plain(problem), 1e-11)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("serving", BACKENDS)
@given(problem=block_problems)
def test_small_graphs_one_by_one_are_those_of_the_plain_loop(serving, memory, problem):
    with set_backend(serving):
        assert_same(problem.solve(memory=memory), plain(problem), 1e-11)


@pytest.mark.parametrize("serving", BACKENDS)
@given(problem=problems)
def test_single_precision_is_as_good_as_the_plain_loop(serving, problem):
    single = problem.to(torch.float32)
    exact = plain(single.to(torch.float64))
    with set_backend(serving):
        result = single.solve()
    for found, rough, wanted in zip(result, plain(single), exact, strict=True):
        scale = wanted.abs().max()
        rounding = 8 * (rough - wanted).abs().max() + 1e-5 * scale + 1e-30
        assert (found - wanted).abs().max() <= rounding


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
@pytest.mark.parametrize("act", list(ACTS))
@pytest.mark.parametrize("channels", [5, 30, 64])
def test_every_instruction_set_agrees(native, isa, act, channels):
    before = native.instruction_set
    if not native.use_instruction_set(isa):
        pytest.skip(f"this processor has no {isa}")
    try:
        for dtype, tolerance in ((torch.float64, 1e-11), (torch.float32, 2e-5)):
            problem = random_problem(60, 200, channels, 18, act, dtype=dtype)
            assert_same(problem.solve(), plain(problem), tolerance)
    finally:
        native.use_instruction_set(before)


@covering("memory, act, shared", MEMORIES, ACTS, [True, False], strength=2)
@pytest.mark.parametrize("serving", BACKENDS)
def test_gradcheck_of_both_orders(serving, memory, act, shared):
    problem = random_problem(4, 7, 2, 3, act, shared)  # the cost grows with its square
    leaves = [t.clone().requires_grad_() for t in problem.leaves()]

    def function(*leaves):
        names = ("x", "w_self", "w_neigh", "bias")
        return replace(problem, **dict(zip(names, leaves, strict=True))).run(memory=memory)

    with set_backend(serving):
        assert gradcheck(function, leaves)
        assert gradgradcheck(function, leaves)


@pytest.mark.parametrize("missing", range(4))
@pytest.mark.parametrize("serving", BACKENDS)
def test_gradients_of_some_inputs_alone(serving, missing):
    problem = random_problem()
    expected = plain(problem)[1:]
    leaves = [t.clone().requires_grad_(i != missing) for i, t in enumerate(problem.leaves())]
    w_self = replace(problem, **dict(zip(("x", "w_self", "w_neigh", "bias"), leaves, strict=True)))
    with set_backend(serving):
        result = w_self.run()
    pull = torch.linspace(-1, 1.7, result.numel(), dtype=result.dtype).view_as(result)
    (result * pull).sum().backward()
    for i, (leaf, wanted) in enumerate(zip(leaves, expected, strict=True)):
        assert leaf.grad is None if i == missing else torch.allclose(leaf.grad, wanted)


@given(problem=block_problems)
@shared_fixture
def test_batching_changes_no_bit_of_states_and_only_rounding_of_weights(native, problem):
    """Each row is computed by the same operations in the same order, however graphs are batched.

    Gradients of weights are sums over all rows, added up in another order: they differ by rounding,
    here in single precision by less than 1e-5 of the largest entry.
    """
    problem = problem.to(torch.float32)
    together = problem.solve()
    pattern = problem.operator.pattern
    apart = SparseOperator(
        SparsePattern(pattern.csr, pattern.transposed, pattern.to_transposed),
        problem.operator.value,
        problem.operator.transposed_value,
    )
    as_one = replace(problem, operator=apart).solve()
    assert torch.equal(together[0], as_one[0])
    assert torch.equal(together[1], as_one[1])
    assert_same(together[2:], as_one[2:], 1e-5)


def test_a_graph_alone_gives_what_it_gives_in_a_batch(native):
    blocks = small_graphs()
    batch = blocks.select(torch.arange(len(blocks)))
    problem = random_problem(blocks=batch, channels=30, steps=20, dtype=torch.float32)
    together = problem.run()
    for graph in range(len(blocks)):
        alone = blocks.select(torch.tensor([graph]))
        rows = alone.node_index
        single = replace(problem, x=problem.x[rows], operator=alone.operator("none", torch.float32))
        assert torch.equal(single.run(), together[rows])


def large_problem(dtype=torch.float32):
    return random_problem(3000, 20_000, 33, 5, symmetric=True, dtype=dtype)


def many_blocks(dtype=torch.float32):
    blocks = small_graphs(300)
    return random_problem(
        blocks=blocks.select(torch.arange(300)), channels=30, steps=9, dtype=dtype
    )


@pytest.mark.parametrize("build", [large_problem, many_blocks])
def test_threads_change_no_bit_and_repeats_neither(native, build):
    problem = build()
    results = []
    for threads in (1, 2, 3, 2):
        torch.set_num_threads(threads)
        results.append(problem.solve())
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("serving", BACKENDS)
@pytest.mark.parametrize("build", [large_problem, many_blocks])
def test_several_parts_and_threads_agree_with_the_plain_loop(serving, build):
    problem = build(torch.float64)
    torch.set_num_threads(2)
    with set_backend(serving):
        assert_same(problem.solve(), plain(problem), 1e-11)


@pytest.mark.parametrize("serving", BACKENDS)
@pytest.mark.parametrize("memory", MEMORIES)
def test_states_are_found_again_accurately_over_many_steps(serving, memory):
    """A thousand steps: what single precision loses is rounding, not digits."""
    problem = random_problem(20, 60, 8, 1000, dtype=torch.float32, normalization="gcn")
    exact = plain(problem.to(torch.float64))
    rough = plain(problem)
    with set_backend(serving):
        result = problem.solve(memory=memory)
    for found, other, wanted in zip(result, rough, exact, strict=True):
        bound = 3 * (other - wanted).abs().max() + 1e-5 * wanted.abs().max()
        assert (found - wanted).abs().max() <= bound


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e-3, 1.0, 10.0])
@pytest.mark.parametrize("serving", BACKENDS)
def test_gradients_of_all_layers_keep_their_digits_whatever_the_first_states(
    serving, scale, blocks
):
    """The first states may be tiny beside what the steps add: each layer's gradient counts."""
    batch = small_graphs().select(torch.arange(9)) if blocks else None
    problem = random_problem(
        20, 60, 8, 20, dtype=torch.float32, shared=False, normalization="gcn", blocks=batch
    )
    problem = replace(problem, x=problem.x * scale)
    exact, rough = plain(problem.to(torch.float64)), plain(problem)
    with set_backend(serving):
        result = problem.solve()

    def errors(found, wanted):
        """Of each layer, relative to the size of its gradient."""
        return (found - wanted).flatten(1).norm(dim=1) / wanted.flatten(1).norm(dim=1)

    for found, other, wanted in zip(result[2:4], rough[2:4], exact[2:4], strict=True):  # M and V
        assert (errors(found, wanted) <= 2 * errors(other, wanted) + 1e-6).all()


@pytest.mark.parametrize("serving", BACKENDS)
@pytest.mark.parametrize("act", ["relu", "identity"])
def test_states_that_grow_without_bound_keep_their_gradients(serving, act):
    problem = random_problem(20, 100, 6, 30, act)
    problem = replace(problem, w_self=problem.w_self * 40, w_neigh=problem.w_neigh.abs() * 40)
    assert problem.run().abs().max() > 1e12
    with set_backend(serving):
        assert_same(problem.solve(), plain(problem), 1e-9)


def saved_states(problem, memory):
    """How many states' worth of memory the backward pass holds on to."""
    storages = {}

    def pack(tensor):
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    leaves = [t.clone().requires_grad_() for t in problem.leaves()]
    w_self = replace(problem, **dict(zip(("x", "w_self", "w_neigh", "bias"), leaves, strict=True)))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = w_self.run(memory=memory)
    there_anyway = sum(t.nbytes for t in (*leaves[1:], problem.operator.value))
    assert result.grad_fn is not None
    return (sum(storages.values()) - there_anyway) / problem.x.nbytes


@pytest.mark.parametrize("serving", BACKENDS)
@pytest.mark.parametrize(("act", "per_step"), [("tanh", 1.0), ("relu", 1.25), ("identity", 1.0)])
def test_full_memory_is_once_per_step(serving, act, per_step):
    problem = random_problem(50, 100, 32, 64, act, dtype=torch.float32)
    with set_backend(serving):
        kept = saved_states(problem, "full")
    assert kept <= per_step * 64 + 64 / 16 + 1


@pytest.mark.parametrize("serving", BACKENDS)
@pytest.mark.parametrize("act", list(ACTS))
def test_checkpoints_keep_a_square_root(serving, act):
    problem = random_problem(50, 100, 32, 64, act, dtype=torch.float32)
    with set_backend(serving):
        assert saved_states(problem, "checkpoint") <= 8


def test_checkpoints_of_the_plain_loop():
    problem = replace(random_problem(steps=9), act=torch.nn.functional.gelu)
    assert known_activation(problem.act) is None
    assert_same(problem.solve(memory="checkpoint"), plain(problem), 1e-13)
    assert saved_states(problem, "checkpoint") < saved_states(problem, "full") / 2


@pytest.mark.parametrize("serving", BACKENDS)
def test_backward_twice_with_a_retained_graph(serving):
    problem = random_problem()
    x = problem.x.clone().requires_grad_()
    with set_backend(serving):
        result = replace(problem, x=x).run()
        (first,) = torch.autograd.grad(result.sum(), x, retain_graph=True)
        (second,) = torch.autograd.grad(result.sum(), x)
    assert torch.equal(first, second)


@pytest.mark.parametrize("serving", BACKENDS)
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("steps", [1, 5])
def test_the_result_may_be_overwritten_but_not_the_input(serving, memory, steps):
    problem = random_problem(steps=steps)
    expected = plain(problem)[1]
    x = problem.x.clone().requires_grad_()
    with set_backend(serving):
        result = replace(problem, x=x).run(memory=memory)
        pull = torch.linspace(-1, 1.7, result.numel(), dtype=result.dtype).view_as(result)
        result.mul_(pull)
        result.sum().backward()
        torch.testing.assert_close(x.grad, expected)
        moved = x.detach().clone()
        w_self = problem.w_self.clone().requires_grad_()
        result = replace(problem, x=moved, w_self=w_self).run(memory=memory)
        moved.zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.sum().backward()


@pytest.mark.parametrize("serving", BACKENDS)
def test_without_gradients_the_result_is_the_same(serving):
    problem = random_problem(steps=20)
    with set_backend(serving):
        expected = problem.solve()[0]
        for context in (torch.no_grad(), torch.inference_mode(), nullcontext()):
            with context:
                assert torch.equal(problem.run(), expected)


@pytest.mark.parametrize("build", [large_problem, many_blocks])
@pytest.mark.parametrize("serving", BACKENDS)
def test_inputs_in_unusual_places(serving, build):
    problem = build(torch.float64)
    expected = plain(problem)
    wide = torch.empty(problem.x.size(0), 2 * problem.x.size(1), dtype=torch.float64)
    strided = wide[:, ::2].copy_(problem.x)
    turned = problem.w_self.transpose(1, 2).contiguous().transpose(1, 2)
    assert not strided.is_contiguous() and not turned.is_contiguous()
    with set_backend(serving):
        assert_same(replace(problem, x=strided, w_self=turned).solve(), expected, 1e-11)
        result = replace(problem, x=strided, w_self=turned).run()
    torch.testing.assert_close(result, expected[0])


def test_a_gradient_that_is_one_number_expanded(native):
    problem = random_problem(channels=16)
    x = problem.x.clone().requires_grad_()
    (found,) = torch.autograd.grad(replace(problem, x=x).run().sum(), x)
    (wanted,) = torch.autograd.grad(replace(problem, x=x).run(integrate_reference).sum(), x)
    torch.testing.assert_close(found, wanted)


def wide_indices(problem):
    def wide(csr):
        return CSR(csr.rowptr.long(), csr.col.long(), csr.shape)

    pattern = problem.operator.pattern
    long = SparsePattern(wide(pattern.csr), wide(pattern.transposed), pattern.to_transposed)
    return replace(problem, operator=SparseOperator(long, problem.operator.value))


def leading_dimensions(problem):
    return replace(problem, x=torch.stack([problem.x, 2 * problem.x]))


@pytest.mark.parametrize("change", [wide_indices, leading_dimensions])
def test_what_the_kernels_cannot_do_torch_does(change):
    problem = change(random_problem())
    with set_backend("auto"):
        assert_same(problem.solve(), plain(problem), 1e-11)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (wide_indices, "torch.int64 rowptr"),
        (leading_dimensions, "more than two dimensions"),
        (lambda p: replace(p, act=torch.nn.GELU()), "this activation"),
        (lambda p: p.to(torch.bfloat16), "dtype torch.bfloat16"),
    ],
)
def test_forced_kernels_say_what_they_cannot_do(native, change, reason):
    with pytest.raises(RuntimeError, match=f"cannot serve .*{reason}"):
        change(random_problem()).run()


def test_edge_weights_get_their_gradient():
    edges = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 1]])
    problem = random_problem(3, 1)
    weight = torch.rand(4, dtype=torch.float64, requires_grad=True)

    def function(weight, x):
        operator = graph_operator(edges, weight, num_nodes=3, normalization="gcn")
        return replace(problem, x=x, operator=operator).run()

    assert gradcheck(function, (weight, problem.x.clone().requires_grad_()))


def test_torch_func_and_forward_mode():
    problem = random_problem(4, 8, 2, 3)

    def function(x):
        return replace(problem, x=x).run()

    reverse = torch.func.jacrev(function)(problem.x)
    torch.testing.assert_close(torch.func.jacfwd(function)(problem.x), reverse)
    torch.testing.assert_close(
        torch.autograd.functional.jacobian(function, problem.x.clone()), reverse
    )
    many = torch.stack([problem.x, problem.x + 1])
    expected = torch.stack([function(x) for x in many])
    torch.testing.assert_close(torch.func.vmap(function)(many), expected)
    tangent = torch.ones_like(problem.x)
    with forward_ad.dual_level():
        result = function(forward_ad.make_dual(problem.x, tangent))
        moved = forward_ad.unpack_dual(result).tangent
    torch.testing.assert_close(moved, torch.einsum("abcd,cd->ab", reverse, tangent))


def test_autocast_runs_the_products_in_half_precision():
    problem = random_problem(dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = problem.run()
    torch.testing.assert_close(result.float(), plain(problem)[0], rtol=0.05, atol=0.05)


def test_a_module_with_a_hook_is_called():
    seen = []
    act = torch.nn.Tanh()
    assert known_activation(act) == "tanh"
    act.register_forward_hook(lambda *_: seen.append(1))
    assert known_activation(act) is None
    replace(random_problem(steps=4), act=act).run()
    assert len(seen) == 4


@pytest.mark.parametrize("name", ["w_self", "w_neigh", "bias"])
def test_weights_of_wrong_shape_are_told(name):
    problem = random_problem(steps=4)
    wrong = getattr(problem, name).repeat(3, *[1] * (getattr(problem, name).dim() - 1))
    with pytest.raises(ValueError, match=rf"{name} .*\[3, 5"):
        replace(problem, **{name: wrong}).run()


def test_unknown_memory_is_told():
    with pytest.raises(ValueError, match=r"memory='checkpoints' is not known. Did you mean 'check"):
        random_problem().run(memory="checkpoints")


def test_no_steps_is_an_error():
    with pytest.raises(ValueError, match="num_steps=0"):
        replace(random_problem(), num_steps=0).run()


def test_not_a_number_spreads_as_in_the_plain_loop(native):
    problem = random_problem(symmetric=True)
    problem.x[3, 1] = float("nan")
    expected = problem.run(integrate_reference)
    assert torch.equal(problem.run().isnan(), expected.isnan())


def model(**options):
    torch.manual_seed(0)
    return ADGN(3, 8, 2, num_layers=5, phi="gcn", weight_sharing=False, **options)


@pytest.mark.parametrize("memory", MEMORIES)
def test_layers_with_weights_of_their_own_are_one_integration(memory):
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    at_once, one_by_one = model(memory=memory), model()
    states = one_by_one.encode(x)
    for layer in one_by_one.propagation.layers:
        states = layer(states, edges)
    expected = one_by_one.readout(states)
    result = at_once(x, edges)
    torch.testing.assert_close(result, expected)
    result.square().sum().backward()
    expected.square().sum().backward()
    others = dict(one_by_one.named_parameters())
    for name, parameter in at_once.named_parameters():
        torch.testing.assert_close(parameter.grad, others[name].grad, rtol=1e-4, atol=1e-6)
    readout = result.grad_fn  # of bias, states and weights
    assert readout.next_functions[1][0].name() == "_IntegrateBackward"


def test_a_hook_on_a_layer_sees_its_states():
    network = model()
    seen = []
    for layer in network.propagation.layers:
        layer.register_forward_hook(lambda _, inputs, output: seen.append(output))
    edges = torch.tensor([[0, 1], [1, 0]])
    x = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(network(x, edges), model()(x, edges))
    assert len(seen) == 5


def test_memory_is_checked_when_the_layer_is_made():
    with pytest.raises(
        ValueError, match="memory='half' is not valid for adgn: input should be 'full' or"
    ):
        model(memory="half")


@pytest.mark.parametrize("channels", [30, 64])
@pytest.mark.parametrize("nodes", [40, 40_000])  # below and above what is called a large array
def test_outputs_can_be_changed_in_place(channels, nodes):
    ring = torch.arange(nodes)
    edges = torch.stack([ring, ring.roll(1)])
    operator = graph_operator(edges, num_nodes=nodes)
    x = torch.linspace(-1, 1, nodes * channels).view(nodes, channels).requires_grad_()
    weight = torch.full((1, channels, channels), 0.01, requires_grad=True)
    for output in (
        operator @ x,
        integrate(x, operator, weight, weight, None, epsilon=0.1, act=torch.tanh, num_steps=2),
    ):
        expected = torch.autograd.grad(output.relu().sum(), x, retain_graph=True)[0]
        found = torch.autograd.grad(output.relu_().sum(), x)[0]
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("serving", BACKENDS)
@pytest.mark.parametrize("shape", [(3, 5), (13, 5), (2, 3, 5), (5,)])
def test_states_must_be_those_of_the_graphs_nodes(serving, shape):
    problem = replace(random_problem(), x=torch.zeros(shape, dtype=torch.float64))
    message = rf"x has shape {re.escape(str(list(shape)))} and the operator \[12, 12\]"
    with set_backend(serving), pytest.raises(ValueError, match=message):
        problem.run()


def test_an_operator_must_be_square():
    csr = CSR(torch.zeros(13, dtype=torch.int32), torch.zeros(0, dtype=torch.int32), (12, 9))
    operator = SparseOperator(
        SparsePattern(csr, csr, None, None), torch.zeros(0, dtype=torch.float64)
    )
    with pytest.raises(ValueError, match=r"x has shape \[12, 5\] and the operator \[12, 9\]"):
        replace(random_problem(), operator=operator).run()


@pytest.mark.parametrize("kind", LAZY)
@pytest.mark.parametrize("name", ["x", "w_self", "w_neigh", "bias", "grad", "value"])
@pytest.mark.parametrize("serving", BACKENDS)
def test_lazy_tensors_are_worked_out(serving, name, kind):
    problem = random_problem(steps=3, channels=8)
    tensors = {"grad": problem.x, "value": problem.operator.value}
    tensors |= {key: getattr(problem, key) for key in ("x", "w_self", "w_neigh", "bias")}

    def solve(given):
        given = tensors | given
        leaves = [
            given[key].detach().requires_grad_() for key in ("x", "w_self", "w_neigh", "bias")
        ]
        operator = SparseOperator(problem.operator.pattern, given["value"])
        result = replace(
            problem,
            operator=operator,
            **dict(zip(("x", "w_self", "w_neigh", "bias"), leaves, strict=True)),
        ).run()
        return [result, *torch.autograd.grad(result, leaves, given["grad"])]

    tensor = lazy(kind, tensors[name])
    with set_backend(serving):
        assert_same(solve({name: tensor}), solve({name: worked_out(tensor)}), 1e-13)
