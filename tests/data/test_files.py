import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from adgn.data import DamagedFileError, DataError, GraphPropertyDataset
from adgn.data.files import (
    cache_path,
    load_or_build,
    read_tensors,
    sha256_of_file,
    write_tensors,
)
from tests import warm

TENSORS = {
    "a": torch.arange(12.0).view(3, 4),
    "b": torch.tensor([True, False]),
    "c": torch.tensor(7),
    "empty": torch.empty(0, 3),
}


def assert_equal(found, expected=TENSORS):
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor)
        assert found[name].dtype == tensor.dtype


def test_round_trip(tmp_path):
    path = tmp_path / "x.safetensors"
    write_tensors(path, {**TENSORS, "a": TENSORS["a"].t().contiguous().t()})
    assert_equal(read_tensors(path))
    assert [file.name for file in tmp_path.iterdir()] == ["x.safetensors"]


def test_digest_is_sha256(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256_of_file(tmp_path / "abc") == known


def test_every_truncation_and_every_changed_byte_is_noticed(tmp_path):
    path = tmp_path / "x.safetensors"
    write_tensors(path, TENSORS)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DamagedFileError, match="delete it"):
            read_tensors(path)
    data_start = 8 + int.from_bytes(whole[:8], "little")
    for position in range(data_start, len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(DamagedFileError, match="checksum"):
            read_tensors(path)


def test_a_file_of_another_program_is_not_taken_for_ours(tmp_path):
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(2)}, tmp_path / "x.safetensors")
    with pytest.raises(DamagedFileError):
        read_tensors(tmp_path / "x.safetensors")


@pytest.mark.parametrize("change", ["written over", "cut off"])
def test_tensors_stay_as_they_are_when_their_file_changes(tmp_path, change):
    code = """
import os, sys
from pathlib import Path
import torch
from adgn.data.files import read_tensors, write_tensors

path = Path(sys.argv[1])
tensor = torch.arange(100_000.0)
write_tensors(path, {"a": tensor})
found = read_tensors(path)["a"]
with path.open("r+b") as file:
    if sys.argv[2] == "cut off":
        file.truncate(10)
    else:
        file.write(bytes(path.stat().st_size))
assert torch.equal(found, tensor)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "x.safetensors"), change]
    done = warm.run(command)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_settings_name_the_file(tmp_path):
    first = cache_path(tmp_path, "set", {"a": 1, "b": 2})
    assert first == cache_path(tmp_path, "set", {"b": 2, "a": 1})
    assert first != cache_path(tmp_path, "set", {"a": 1, "b": 3})


def test_builds_once_then_reads(tmp_path):
    builds = []

    def build():
        builds.append(1)
        return TENSORS

    path = tmp_path / "deep" / "x.safetensors"
    assert_equal(load_or_build(path, build))
    assert_equal(load_or_build(path, build))
    assert len(builds) == 1


def test_a_damaged_file_is_made_again_and_said_so(tmp_path):
    path = tmp_path / "x.safetensors"
    write_tensors(path, TENSORS)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.warns(UserWarning, match=r"x\.safetensors is damaged") as warned:
        assert_equal(load_or_build(path, lambda: TENSORS))
    assert len(warned) == 1
    assert_equal(read_tensors(path))


def test_a_failing_build_leaves_nothing(tmp_path):
    path = tmp_path / "x.safetensors"
    with pytest.raises(ZeroDivisionError):
        load_or_build(path, lambda: {"a": torch.tensor(1 // 0)})
    assert not path.exists()
    assert_equal(load_or_build(path, lambda: TENSORS))


def test_a_write_that_fails_keeps_the_earlier_file(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    write_tensors(path, TENSORS)

    def no_space(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(DataError, match=r"cannot write .*x\.safetensors.*No space.*ADGN_DATA"):
        write_tensors(path, {"other": torch.zeros(5)})
    monkeypatch.undo()
    assert_equal(read_tensors(path))
    assert [file.name for file in tmp_path.iterdir()] == ["x.safetensors"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_explained(tmp_path, monkeypatch):
    def to_full_device(tensors, filename, metadata):
        Path("/dev/full").write_bytes(b"0" * 100_000)

    monkeypatch.setattr("adgn.data.files.save_file", to_full_device)
    with pytest.raises(DataError, match="No space left"):
        load_or_build(tmp_path / "x.safetensors", lambda: TENSORS)


def test_an_unwritable_root_is_explained(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write .*writable folder"):
        load_or_build(tmp_path / "file" / "x.safetensors", lambda: TENSORS)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_root_is_explained(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(DataError, match=r"cannot write .*writable folder"):
        load_or_build(tmp_path / "adgn" / "x.safetensors", lambda: TENSORS)


def test_leftovers_of_a_dead_preparation_are_removed_not_read(tmp_path):
    leftover = tmp_path / ".x.safetensors.123.tmp"
    leftover.write_bytes(b"half a file")
    assert_equal(load_or_build(tmp_path / "x.safetensors", lambda: TENSORS))
    assert not leftover.exists()


PREPARE = """
import sys, time
from adgn.data import GraphPropertyDataset

def progress(done, total):
    print(done, flush=True)
    time.sleep(float(sys.argv[2]))

dataset = GraphPropertyDataset(
    sys.argv[1], min_nodes=6, train=(4, 4), val=(1, 1), test=(1, 1), progress=progress
)
print("sum", float(dataset.packed.x.sum()), flush=True)
"""
SETTINGS = {"min_nodes": 6, "train": (4, 4), "val": (1, 1), "test": (1, 1)}


def start_preparing(root, pause):
    command = [sys.executable, "-c", PREPARE, str(root), str(pause)]
    return warm.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_processes_preparing_at_once_both_end_well(tmp_path):
    processes = [start_preparing(tmp_path, 0.3) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    results = {out.splitlines()[-1] for out, _ in outputs}
    assert len(results) == 1
    # One of them did the work; the other waited for it and read the result.
    worked = [out for out, _ in outputs if len(out.splitlines()) > 1]
    assert len(worked) == 1
    waited = next(err for out, err in outputs if out not in worked)
    assert waited == "" or "another process is preparing" in waited


def test_a_killed_preparation_leaves_nothing_that_is_trusted(tmp_path):
    process = start_preparing(tmp_path, 60)
    assert process.stdout.readline().strip() == "4"  # it is in the middle of its work
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert list((tmp_path / "adgn").glob("*.safetensors")) == []
    start = time.monotonic()
    dataset = GraphPropertyDataset(tmp_path, **SETTINGS)
    assert time.monotonic() - start < 60  # the dead process holds no lock
    assert len(dataset) == 16
