import errno
import json
import math
import os
import stat
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adgn._util.files import (
    check_is_file,
    finite_or_none,
    open_to_append,
    parse_json,
    read_file,
    remove_temporaries,
    replaced_file,
    write_file,
)

numbers = st.floats() | st.integers() | st.none() | st.text()
values = st.recursive(
    numbers, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_written_file_has_its_content_and_leaves_nothing_beside(tmp_path):
    write_file(tmp_path / "a", b"first")
    write_file(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"second"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_failed_write_keeps_the_earlier_file(tmp_path, monkeypatch, failing):
    write_file(tmp_path / "a", b"first")

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    if failing == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    else:
        monkeypatch.setattr(type(tmp_path), "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_file(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"first"
    assert names(tmp_path) == ["a"]


def test_block_that_fails_keeps_the_earlier_file(tmp_path):
    write_file(tmp_path / "a", b"first")
    with pytest.raises(KeyError), replaced_file(tmp_path / "a") as temporary:
        temporary.write_bytes(b"half")
        raise KeyError
    assert (tmp_path / "a").read_bytes() == b"first"
    assert names(tmp_path) == ["a"]


def test_written_file_has_the_mode_that_the_user_asked_for(tmp_path):
    code = """
        import os, sys
        from pathlib import Path
        from adgn._util.files import write_file
        os.umask(0o027)
        write_file(Path(sys.argv[1]), b"")
    """
    path = tmp_path / "a"
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(path)], check=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_names_of_temporary_files_cannot_be_known_beforehand(tmp_path):
    seen = set()
    for _ in range(5):
        with replaced_file(tmp_path / "a") as temporary:
            temporary.write_bytes(b"")
            seen.add(temporary.name)
    assert len(seen) == 5
    assert all(len(name) > len(".a.tmp") + 10 for name in seen)


@pytest.fixture
def elsewhere(tmp_path):
    """A file outside the folder that is written to."""
    path = tmp_path / "elsewhere"
    path.write_bytes(b"precious")
    yield path
    assert path.read_bytes() == b"precious"


@pytest.mark.parametrize("use", [lambda path: write_file(path, b"x"), open_to_append, read_file])
def test_links_are_refused(tmp_path, elsewhere, use):
    path = tmp_path / "a"
    path.symlink_to(elsewhere)
    with pytest.raises(OSError, match="it is a link, not a file"):
        use(path)
    assert path.is_symlink()


@pytest.mark.parametrize("use", [open_to_append, read_file])
def test_link_that_appears_after_the_check_is_not_followed(tmp_path, elsewhere, monkeypatch, use):
    path = tmp_path / "a"
    path.symlink_to(elsewhere)
    monkeypatch.setattr("adgn._util.files.check_is_file", lambda path: None)
    with pytest.raises(OSError) as error:
        use(path)
    assert error.value.errno == errno.ELOOP


@pytest.mark.parametrize("use", [lambda path: write_file(path, b"x"), open_to_append, read_file])
def test_pipes_and_folders_are_refused_without_waiting(tmp_path, use):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a pipe, not a file"):
        use(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="it is a folder, not a file"):
        use(tmp_path / "folder")
    assert names(tmp_path) == ["folder", "pipe"]


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(OSError, match="it is a file, not a folder"):
        check_is_file(tmp_path / "a", folder=True)
    check_is_file(tmp_path, folder=True)
    check_is_file(tmp_path / "not there", folder=True)


def test_appending_makes_the_file_and_goes_on_at_its_end(tmp_path):
    for line in (b"one\n", b"two\n"):
        with open_to_append(tmp_path / "a") as file:
            file.write(line)
    assert read_file(tmp_path / "a") == b"one\ntwo\n"


def test_leftovers_of_the_named_file_alone_are_removed(tmp_path):
    for name in (".a.tmp", ".a.12ab.tmp", ".b.12ab.tmp", "a.tmp", ".a"):
        (tmp_path / name).touch()
    remove_temporaries(tmp_path, "a")
    assert names(tmp_path) == [".a", ".b.12ab.tmp", "a.tmp"]


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, "[" * 500 + "]" * 500, "", "{", b"\xff", "nonsense"],
)
def test_every_text_that_is_not_usable_json_is_a_value_error(text):
    with pytest.raises(ValueError):
        parse_json(text)


def test_what_is_json():
    assert parse_json('{"a": [1, null]}') == {"a": [1, None]}
    assert parse_json("[" * 100 + "]" * 100)


@given(values)
def test_strict_json_takes_everything(value):
    json.dumps(finite_or_none(value), allow_nan=False)


@given(numbers)
def test_finite_numbers_stay(number):
    lost = isinstance(number, float) and not math.isfinite(number)
    assert finite_or_none([number]) == [None if lost else number]
