import pytest
import torch

from adgn.graph import CSR
from adgn.graph.native import calls, part_calls
from tests.graph.native.guards import Guards, Unguarded, guarded_csr

OWN, EXTRA, STEPS = 23, 7, 2
CHANNELS = [*range(1, 36), 63, 64, 65, 70]
RANGES = ((0, 1), (1, 16), (16, OWN))  # a range of one row, and one that ends within a tile


def some_part(dtype, generator):
    """A matrix whose columns are own rows and, from `OWN` on, rows of others; one row is empty."""
    row = torch.randint(1, OWN, (90,), generator=generator)
    col = torch.randint(0, OWN + EXTRA, (90,), generator=generator)
    csr, _ = CSR.from_entries(row, col, (OWN, OWN + EXTRA))
    return csr, torch.rand(csr.col.numel(), dtype=dtype, generator=generator)


@pytest.mark.parametrize("activation", calls.ACTIVATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_steps_of_rows_read_and_write_nothing_outside_of_their_arrays(
    native, isa, dtype, activation, monkeypatch
):
    generator = torch.Generator().manual_seed(0)
    csr, value = some_part(dtype, generator)
    tanh, relu = activation == "tanh", activation == "relu"

    def both_ways(guards, states, weights, grad, others):
        """Forward and backward through the steps, range by range, all arrays guarded."""
        width = states.size(1)
        problem = calls.integration(
            native,
            *(guarded_csr(guards, csr), guards.around(value), *map(guards.around, weights)),
            *(None, 0.1, activation, STEPS),
            extra=EXTRA,
        )
        shape = (STEPS, OWN, width)
        activated = guards.empty(native, shape, dtype) if tanh else None
        active = guards.empty(native, shape, torch.uint8) if relu else None
        before = [guards.around(states)]
        for step in range(STEPS):
            after = guards.around(states)  # below own rows: the same others in each step
            after[:OWN] = float("nan")
            for rows in RANGES:
                part_calls.step_forward(
                    native, problem, step, rows, before[-1], after, (activated, active, None)
                )
            before.append(after)
        grads = tuple(guards.around(torch.zeros_like(weight)) for weight in weights)
        kept = (activated, active, before[0] if tanh else None)
        back = part_calls.BackwardSteps(native, problem, guards.around(grad), EXTRA, kept, grads)
        for step in reversed(range(STEPS)):
            back.r[OWN:] = others
            for rows in RANGES:
                back.step(step, rows, None if tanh else before[step])
            back.next_step()
        return before[-1][:OWN], back.g, *grads

    for channels in CHANNELS:
        width = calls.padded_width(channels, dtype)
        states, grad, others = (
            torch.nn.functional.pad(
                torch.randn(rows, channels, dtype=dtype, generator=generator),
                (0, width - channels),
            )
            for rows in (OWN + EXTRA, OWN, EXTRA)
        )
        sets = 1 + channels % STEPS
        shapes = ((sets, channels, channels), (sets, channels, channels), (sets, channels))
        weights = [0.3 * torch.randn(shape, dtype=dtype, generator=generator) for shape in shapes]
        expected = both_ways(Unguarded(), states, weights, grad, others)
        guards = Guards(shift=channels // 2 % 2)
        with monkeypatch.context() as patch:
            patch.setattr(calls, "buffers", guards)
            patch.setattr(part_calls, "buffers", guards)
            results = both_ways(guards, states, weights, grad, others)
        assert all(torch.equal(a, b) for a, b in zip(results, expected, strict=True)), channels
        assert all(bool(result.isfinite().all()) for result in results), channels
        assert guards.untouched(), channels
