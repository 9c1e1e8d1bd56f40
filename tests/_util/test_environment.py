import math
import os
import subprocess

import pytest

from adgn._util import environment
from adgn._util.environment import NotEnoughMemoryError, available_bytes, check_memory, meminfo

GIB = 2.0**30


def test_the_processor_has_a_name_also_where_the_system_has_no_list(monkeypatch, tmp_path):
    listed = tmp_path / "cpuinfo"
    listed.write_text("processor\t: 0\nmodel name\t: Some Processor @ 2 GHz\n")
    monkeypatch.setattr(environment, "_CPUINFO", listed)
    assert environment.processor() == "Some Processor @ 2 GHz"
    monkeypatch.setattr(environment, "_CPUINFO", tmp_path / "none")
    assert environment.processor()


def test_the_load_is_that_of_the_last_minute(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (1.234, 9.0, 9.0))
    assert environment.load_average() == 1.23
    monkeypatch.delattr(os, "getloadavg")
    assert math.isnan(environment.load_average())


def test_the_commit_tells_of_changes(monkeypatch, tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)

    monkeypatch.setattr(environment, "_PACKAGE", tmp_path)
    git("init", "-q")
    assert environment.git_commit() is None  # in a repository, but not part of it
    (tmp_path / "__init__.py").write_text("")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    clean, changed = environment.git_commit()
    assert len(clean) == 40
    assert not changed
    (tmp_path / "__init__.py").write_text("changed = True")
    assert environment.git_commit() == (clean, True)


def test_the_environment_of_a_result_names_versions_and_machine():
    import numpy
    import torch

    about = environment.environment()
    assert [*about] == [
        "adgn",
        "git_commit",
        "python",
        "torch",
        "torch_geometric",
        "numpy",
        "platform",
        "processor",
        "cores",
        "threads",
    ]
    assert (about["torch"], about["numpy"]) == (torch.__version__, numpy.__version__)
    assert about["threads"] == torch.get_num_threads()


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with 8 GiB of memory available, without limits of a container."""
    info = tmp_path / "meminfo"
    info.write_text(f"MemTotal: {16 * 2**20} kB\nMemAvailable: {8 * 2**20} kB\n")
    monkeypatch.setattr(environment, "_MEMINFO", info)
    monkeypatch.setattr(environment, "_CGROUP", tmp_path / "cgroup")
    return tmp_path


def limited(folder, limit, used, cached, names):
    folder.mkdir(parents=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"file 1\ninactive_file {cached}\n")


def test_what_the_machine_has(machine):
    assert meminfo("MemTotal") == 16 * GIB
    assert meminfo("Nothing") == 0
    assert available_bytes() == 8 * GIB


def test_an_untold_amount_of_memory_is_no_limit(machine, monkeypatch):
    monkeypatch.setattr(environment, "_MEMINFO", machine / "none")
    assert available_bytes() == math.inf


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("cgroup", ("memory.max", "memory.current")),
        ("cgroup/memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")),
    ],
)
def test_the_limit_of_a_container(machine, folder, names):
    limited(machine / folder, 4 * 2**30, 3 * 2**30, 2**30, names)
    assert available_bytes() == 2 * GIB  # cached files can be dropped


@pytest.mark.parametrize("limit", ["max", 2**63])
def test_a_container_without_a_limit(machine, limit):
    limited(machine / "cgroup", limit, 3 * 2**30, 0, ("memory.max", "memory.current"))
    assert available_bytes() == 8 * GIB


def test_more_than_there_is_is_refused_with_the_numbers(machine):
    check_memory(8 * GIB, "this")
    with pytest.raises(NotEnoughMemoryError, match=r"this needs about 9.1 GB .* 8.6 GB are free"):
        check_memory(8.5 * GIB, "this")
    for need in (1e40, math.inf):
        with pytest.raises(NotEnoughMemoryError, match="set ADGN_MEMORY_CHECK=off"):
            check_memory(need, "this")


def test_a_variable_overrides(machine, monkeypatch):
    monkeypatch.setenv("ADGN_MEMORY_CHECK", "off")
    check_memory(math.inf, "this")
    monkeypatch.setenv("ADGN_MEMORY_CHECK", "no")
    with pytest.raises(ValueError, match="ADGN_MEMORY_CHECK='no' is not valid"):
        check_memory(1.0, "this")
