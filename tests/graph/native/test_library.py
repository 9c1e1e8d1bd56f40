import os
import subprocess
import sys
from pathlib import Path

import pytest

from adgn.graph.native import library as library_module
from adgn.graph.native.library import NativeLibrary, load_library

ROOT = Path(__file__).parents[3]

FORK = """
import os, signal, torch
from adgn.graph import graph_operator, set_backend
from adgn.nn.integration import integrate
set_backend("native")
torch.set_num_threads(2)
generator = torch.Generator().manual_seed(0)
edges = torch.randint(0, 3000, (2, 20000), generator=generator)
x = torch.randn(3000, 32, generator=generator)
w = torch.randn(1, 32, 32, generator=generator) / 20
operator = graph_operator(edges, num_nodes=3000)
def run():
    return integrate(x, operator, w, w, None, epsilon=0.1, act=None, num_steps=3)
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
