"""Memory that comes back and serves again."""

import gc
import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adgn.graph import clear_cache
from adgn.graph.native.buffers import LARGE, BufferPool, buffers

FLOATS = LARGE // 4


@pytest.fixture
def pool() -> BufferPool:
    return BufferPool()


def test_memory_of_a_tensor_that_is_gone_serves_the_next(pool: BufferPool) -> None:
    first = pool.empty(None, (2, FLOATS), torch.float32)
    address = first.data_ptr()
    del first
    assert pool.waiting_bytes == 2 * LARGE
    again = pool.empty(None, (FLOATS,), torch.float64)  # as many bytes, another form
    assert again.data_ptr() == address
    assert pool.waiting_bytes == 0


def test_memory_in_use_is_never_handed_out(pool: BufferPool) -> None:
    held = [pool.empty(None, (FLOATS,), torch.float32).fill_(i) for i in range(4)]
    assert len({tensor.data_ptr() for tensor in held}) == 4
    for i, tensor in enumerate(held):
        assert torch.equal(tensor, torch.full_like(tensor, i))


def test_a_view_keeps_the_memory(pool: BufferPool) -> None:
    view = pool.empty(None, (FLOATS,), torch.float32).fill_(7.0)[5:9]
    other = pool.empty(None, (FLOATS,), torch.float32).fill_(0.0)
    assert view.tolist() == [7.0] * 4
    assert other.data_ptr() != view.data_ptr() - 20


def test_what_autograd_saved_keeps_the_memory(pool: BufferPool) -> None:
    state = pool.empty(None, (FLOATS,), torch.float32).fill_(3.0).requires_grad_()
    product = (state * state).sum()
    address = state.data_ptr()
    del state
    gc.collect()
    assert pool.empty(None, (FLOATS,), torch.float32).data_ptr() != address
    product.backward()


def test_a_tensor_is_no_view(pool: BufferPool) -> None:
    assert not pool.empty(None, (2, FLOATS), torch.float32)._is_view()


def test_another_default_device_does_not_matter(pool: BufferPool) -> None:
    with torch.device("meta"):
        small, large = (
            pool.empty(None, (4,), torch.float32),
            pool.empty(None, (FLOATS,), torch.uint8),
        )
        large_floats = pool.empty(None, (FLOATS,), torch.float32)
    assert {t.device.type for t in (small, large, large_floats)} == {"cpu"}


def test_a_request_that_nothing_fits_frees_what_waits(pool: BufferPool) -> None:
    del_me = pool.empty(None, (FLOATS,), torch.float32)
    del del_me
    pool.empty(None, (3 * FLOATS,), torch.float32)
    assert pool.waiting_bytes == 3 * LARGE


def test_small_tensors_are_not_kept(pool: BufferPool) -> None:
    pool.empty(None, (FLOATS - 1,), torch.float32)
    assert pool.waiting_bytes == 0


def test_clear_cache_gives_the_memory_back() -> None:
    buffers.empty(None, (FLOATS,), torch.float32)
    assert buffers.waiting_bytes >= LARGE
    clear_cache()
    assert buffers.waiting_bytes == 0


def test_threads_do_not_share_a_room(pool: BufferPool) -> None:
    wrong = []

    def work(number: int) -> None:
        for _ in range(20):
            tensor = pool.empty(None, (FLOATS,), torch.float32).fill_(number)
            if not bool((tensor == number).all()):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), st.booleans()), max_size=12))
def test_no_order_of_requests_makes_two_tensors_overlap(requests: list[tuple[int, bool]]) -> None:
    pool, held = BufferPool(), []
    for number, (size, keep) in enumerate(requests):
        tensor = pool.empty(None, (size, 16), torch.float32)  # small ones are of malloc
        tensor = pool.empty(None, (size * FLOATS,), torch.float32)
        tensor[0] = tensor[-1] = number
        if keep:
            held.append((number, tensor))
        elif held:
            held.pop(0)
    assert all(t[0] == number and t[-1] == number for number, t in held)
