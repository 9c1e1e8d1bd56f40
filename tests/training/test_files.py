import errno
import os

import pytest

from adgn.training.errors import DamagedRunError, RunError
from adgn.training.files import AppendedFile, read_bytes, sha256, write_atomically


def test_failed_write_keeps_the_earlier_file_and_says_what_to_do(tmp_path, monkeypatch):
    write_atomically(tmp_path / "a", b"first")

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match=r"cannot write .*a: No space left.*adgn resume"):
        write_atomically(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"first"


@pytest.mark.parametrize("use", [lambda path: write_atomically(path, b"x"), AppendedFile])
def test_a_link_is_not_written_through(tmp_path, use):
    (tmp_path / "elsewhere").write_bytes(b"precious")
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match=r"cannot write .*a: it is a link, not a file"):
        use(tmp_path / "a")
    assert (tmp_path / "elsewhere").read_bytes() == b"precious"


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
    with pytest.raises(DamagedRunError, match="lines is missing; put the file back"):
        AppendedFile(tmp_path / "lines", 4, sha256(b"one\n"))
