import gc
import itertools
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adgn.graph import backend, clear_cache, graph_operator, multiply_reference, set_backend
from adgn.graph.native import library as library_module
from adgn.graph.native.library import (
    LARGE,
    VARIABLE,
    BufferPool,
    NativeLibrary,
    buffers,
    load_library,
    native_library,
    setting,
)

FLOATS = LARGE // 4
ROOT = Path(__file__).parents[3]

FORK = """
import os, signal, torch
from adgn.graph import graph_operator, locality, set_backend
from adgn.nn.integration import integrate
set_backend("native")
locality.LEAST_SAVED = -1.0  # nodes are renumbered, too
torch.set_num_threads(2)
generator = torch.Generator().manual_seed(0)
edges = torch.randint(0, 20000, (2, 60000), generator=generator)
x = torch.randn(20000, 32, generator=generator)
w = torch.randn(1, 32, 32, generator=generator) / 20
operator = graph_operator(edges, num_nodes=20000)
def run():
    return integrate(x, operator, w, w, None, epsilon=0.1, act=None, num_steps=4)
def status_of_child(expected):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        result = run().numpy()
        os._exit(0 if expected is None or bytes(result) == bytes(expected.numpy()) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
torch.ones(4_000_000).sin()  # torch starts its threads, which no child inherits
assert status_of_child(None) == 0
assert status_of_child(run()) == 0
"""


def test_uses_one_openmp_runtime(native):
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("only Linux lists what a process has loaded")
    loaded = {line.split()[-1] for line in maps.read_text().splitlines() if "omp" in line}
    runtimes = {Path(name).name for name in loaded if name.endswith((".so", ".so.1"))}
    assert len([name for name in runtimes if name.startswith(("libgomp", "libiomp"))]) <= 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_child_computes_the_same(native):
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    assert subprocess.run(command, timeout=120, check=False).returncode == 0


def test_running_out_of_memory_is_an_error(native):
    with pytest.raises(MemoryError, match="adgn_sort_entries"):
        native.call("adgn_sort_entries", None, None, 0, 1, 2**62, None, None, None, None)


def test_a_library_of_another_version_is_not_used(native, monkeypatch):
    monkeypatch.setattr(library_module, "_INTERFACE", -1)
    with pytest.raises(OSError, match="another version of the package"):
        NativeLibrary(native.path)


def test_a_file_that_is_no_library_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(library_module, "__file__", str(tmp_path / "library.py"))
    assert "were not built" in load_library.__wrapped__()
    (tmp_path / library_module._FILE).write_text("not a library")
    assert "do not load" in load_library.__wrapped__()


def test_without_a_compiler_the_build_succeeds_without_kernels(tmp_path):
    pytest.importorskip("setuptools")
    if not (ROOT / "setup.py").exists():
        pytest.skip("not run from the source tree")
    environment = {**os.environ, "CC": "no-such-compiler", "CXX": "no-such-compiler"}
    command = [sys.executable, "setup.py", "-q", "build_ext"]
    command += ["--build-lib", str(tmp_path / "lib"), "--build-temp", str(tmp_path / "temp")]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("_kernels*"))
    said = [line for line in done.stderr.splitlines() if line.startswith("adgn: ")]
    assert len(said) == 1
    assert "kernels were NOT built" in said[0]
    assert "C++17 compiler" in said[0]


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


def test_memory_serves_a_request_that_is_a_little_smaller_or_larger(pool: BufferPool) -> None:
    """Batches of graphs differ in size by a few percent."""
    addresses = set()
    for share in (1.0, 0.97, 1.02, 0.99, 1.01):
        tensor = pool.empty(None, (int(5 * FLOATS * share),), torch.float32)
        addresses.add(tensor.data_ptr())
        tensor.fill_(1.0)
        assert tensor.numel() == int(5 * FLOATS * share)
        del tensor
    assert len(addresses) <= 2
    pool.empty(None, (4 * FLOATS,), torch.float32)  # a fifth smaller: memory of its own
    assert pool.waiting_bytes == 4 * LARGE


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


@pytest.fixture
def nothing_set(monkeypatch):
    monkeypatch.setattr(library_module, "_setting", None)
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def not_built(nothing_set, monkeypatch):
    monkeypatch.setattr(library_module, "load_library", lambda: "nothing was built")
    monkeypatch.setattr(library_module, "_times_missing", itertools.count())


def test_native_serves_where_it_can(native, nothing_set):
    with set_backend("auto"):
        served = backend()
    assert (served.name, served.reason) == ("native", "")
    assert served.instruction_set in ("baseline", "avx2", "avx512")
    assert served.threads == torch.get_num_threads()


def test_the_environment_chooses(nothing_set, monkeypatch):
    assert setting() == "auto"
    monkeypatch.setenv(VARIABLE, "torch")
    assert backend().name == "torch"
    assert "ADGN_BACKEND" in backend().reason
    assert native_library() is None


def test_set_backend_wins_over_the_environment_and_ends(nothing_set, monkeypatch):
    monkeypatch.setenv(VARIABLE, "auto")
    with set_backend("torch"):
        assert setting() == "torch"
        with set_backend("auto"):
            assert setting() == "auto"
        assert setting() == "torch"
    assert setting() == "auto"
    set_backend("torch")
    assert setting() == "torch"


def test_set_backend_ends_with_an_error_too(nothing_set):
    with pytest.raises(KeyError), set_backend("torch"):
        raise KeyError
    assert setting() == "auto"


def test_unknown_names_are_told(nothing_set, monkeypatch):
    with pytest.raises(ValueError, match=r"setting='nativ' is not known. Did you mean 'native'"):
        set_backend("nativ")
    monkeypatch.setenv(VARIABLE, "torsh")
    with pytest.raises(ValueError, match=r"ADGN_BACKEND='torsh' is not known.*'torch'"):
        backend()


def test_without_kernels_torch_serves_and_says_so_once(not_built, caplog):
    edges = torch.tensor([[0, 1, 1], [1, 0, 2]])
    with caplog.at_level(logging.WARNING, logger="adgn"):
        operator = graph_operator(edges, num_nodes=3)
        x = torch.randn(3, 4)
        torch.testing.assert_close(operator @ x, multiply_reference(operator, x))
    told = [record.getMessage() for record in caplog.records if record.name == "adgn"]
    assert told == ["torch does the work, more slowly: nothing was built"]
    assert (backend().name, backend().reason) == ("torch", "nothing was built")


def test_without_kernels_native_cannot_be_forced(not_built, monkeypatch):
    with pytest.raises(RuntimeError, match="nothing was built; or use 'auto' or 'torch'"):
        set_backend("native")
    assert setting() == "auto"
    monkeypatch.setenv(VARIABLE, "native")
    with pytest.raises(RuntimeError, match="ADGN_BACKEND=native: nothing was built"):
        native_library()


def test_torch_is_chosen_silently(not_built, caplog):
    with set_backend("torch"), caplog.at_level(logging.WARNING, logger="adgn"):
        assert native_library() is None
    assert not caplog.records


def test_native_library_is_the_library(native):
    assert isinstance(native_library(), NativeLibrary)
