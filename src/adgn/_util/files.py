"""Files that are whole or absent, and JSON: somebody else may have put them there.

Links are not followed.
"""

import errno
import json
import math
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

# Opening a pipe would wait for its other end.
_PLAIN_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
DEEPEST = 100  # levels of JSON
_KINDS = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe"}


def check_is_file(path: Path, *, folder: bool = False) -> None:
    """Raises `OSError` where something else than a file (or than a folder) has this name."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_IFMT(mode) != (stat.S_IFDIR if folder else stat.S_IFREG):
        kind = _KINDS.get(stat.S_IFMT(mode), "a file" if stat.S_ISREG(mode) else "a device")
        wanted = "a folder" if folder else "a file"
        raise OSError(errno.EINVAL, f"it is {kind}, not {wanted}", str(path))


def read_file(path: Path) -> bytes:
    """The contents of a file; a link, folder or pipe is refused with an `OSError`."""
    check_is_file(path)
    with open(path, "rb", opener=_open_plain) as file:
        return file.read()


def open_to_append(path: Path) -> BinaryIO:
    """Opens a file to write at its end, made if it is not there; a link is refused."""
    check_is_file(path)
    return open(path, "ab", opener=_open_plain)


def _open_plain(path: str, flags: int) -> int:
    return os.open(path, flags | _PLAIN_FILE, 0o666)


def write_file(path: Path, data: bytes) -> None:
    """Writes a file that is there in whole or not at all, whenever the process or machine stops.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_file(Path(folder) / "a", b"whole")
        ...     (Path(folder) / "a").read_bytes()
        b'whole'
    """
    with replaced_file(path) as temporary, temporary.open("xb") as file:
        file.write(data)


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """A name beside `path`, that nobody knows beforehand, to write a new file at.

    It replaces `path` once it is on the disk; where the block fails `path` stays as it was.
    """
    check_is_file(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        yield temporary
        _flush(temporary, os.O_RDWR)
        temporary.replace(path)
        if os.name != "nt":  # folders cannot be opened there
            _flush(path.parent, os.O_RDONLY)
    finally:
        temporary.unlink(missing_ok=True)


def _flush(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_temporaries(folder: Path, name: str) -> None:
    """Removes what a killed process left of files of a name, or pattern, that it was writing."""
    for leftover in folder.glob(f".{name}.*tmp"):
        leftover.unlink(missing_ok=True)


def parse_json(text: str | bytes) -> Any:
    """What a JSON text holds; every text that holds nothing is a `ValueError`.

    Files of this package are nested a few levels deep. Much deeper ones would end in a
    `RecursionError`, here or wherever they are walked through.

    Example:
        >>> parse_json(b'{"a": [1]}')
        {'a': [1]}
        >>> parse_json("[" * 101 + "]" * 101)
        Traceback (most recent call last):
        ValueError: it is nested more than 100 levels deep
    """
    too_deep = ValueError(f"it is nested more than {DEEPEST} levels deep")
    try:
        content = json.loads(text)
    except RecursionError:
        raise too_deep from None
    level = [content]
    for _ in range(DEEPEST):
        level = [item for value in level for item in _inside(value)]
        if not level:
            return content
    raise too_deep


def _inside(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def finite_or_none(value: Any) -> Any:
    """The value with `None` in place of every number that is not finite, in lists and mappings too.

    Example:
        >>> finite_or_none({"loss": 0.5, "scores": [float("nan"), 1.0]})
        {'loss': 0.5, 'scores': [None, 1.0]}
    """
    if isinstance(value, Mapping):
        return {key: finite_or_none(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_none(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
