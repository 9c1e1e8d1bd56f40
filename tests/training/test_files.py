import errno
import os

import pytest

from adgn.training.errors import DamagedRunError, RunError
from adgn.training.files import AppendedFile, read_bytes, sha256, write_atomically


def test_written_file_has_its_content_and_leaves_nothing_beside(tmp_path):
    write_atomically(tmp_path / "a", b"first")
    write_atomically(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"second"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_failed_write_keeps_the_earlier_file(tmp_path, monkeypatch, failing):
    write_atomically(tmp_path / "a", b"first")

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    if failing == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    else:
        monkeypatch.setattr(type(tmp_path), "replace", full)
    with pytest.raises(RunError, match=r"cannot write .*a: No space left.*adgn resume"):
        write_atomically(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_advice_of_a_failed_write_is_the_callers(tmp_path):
    with pytest.raises(RunError, match=r"No such file.*intact: choose another --out$"):
        write_atomically(tmp_path / "none" / "a", b"x", "choose another --out")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(DamagedRunError, match=r"a is missing; look elsewhere"):
        read_bytes(tmp_path / "a", "look elsewhere")


def test_appended_file_goes_on_where_it_was_cut(tmp_path):
    path = tmp_path / "lines"
    with AppendedFile(path) as file:
        file.append("one")
        length, digest = file.sync()
        file.append("two")
    assert path.read_bytes() == b"one\ntwo\n"
    assert (length, digest) == (4, sha256(b"one\n"))
    with AppendedFile(path, length, digest) as file:
        file.append("three")
        assert file.sync() == (10, sha256(b"one\nthree\n"))
    assert path.read_bytes() == b"one\nthree\n"


@pytest.mark.parametrize("content", [b"on", b"ONE\n", b""])
def test_appended_file_that_lost_or_changed_bytes_is_refused(tmp_path, content):
    path = tmp_path / "lines"
    path.write_bytes(content)
    with pytest.raises(DamagedRunError, match="first 4 bytes"):
        AppendedFile(path, 4, sha256(b"one\n"))


def test_appended_file_that_is_gone_is_refused(tmp_path):
    with pytest.raises(DamagedRunError, match="damaged"):
        AppendedFile(tmp_path / "lines", 4, sha256(b"one\n"))
