"""Files of a run: whole or absent, and append-only ones that can be cut back to a known length."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adgn._util.files import open_to_append, read_file, write_file
from adgn.training.errors import DamagedRunError, RunError

# What to do about a file that could not be written: of a run, of other work that goes on where it
# was, and of output that can go elsewhere.
_RESUME = "make room or restore access, then go on with `adgn resume`"
RUN_AGAIN = "make room or restore access, then give the same command again"
_RESTORE = "put the file back, or start the run again in another directory"
OTHER_OUT = "make room or restore access, or choose another --out"


def sha256(data: bytes) -> str:
    """The SHA-256 digest of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def write_atomically(path: Path, data: bytes, remedy: str = _RESUME) -> None:
    """Writes a file in whole or not at all; `remedy` is the advice where it cannot be written."""
    with _write_errors(path, remedy):
        write_file(path, data)


def read_bytes(path: Path, remedy: str) -> bytes:
    """The contents of a file of a run; `remedy` completes the message where it is missing."""
    try:
        return read_file(path)
    except FileNotFoundError as error:
        raise DamagedRunError(f"{path} is missing; {remedy}") from error
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror or error}") from error


class AppendedFile:
    """A file that grows line by line and knows the length and digest of what is in it.

    Args:
        path: The file; made if it is not there.
        length: How many of its bytes are to stay; what follows them is cut off.
        digest: The SHA-256 that those bytes must have; `None` where nothing is known.
    """

    def __init__(self, path: Path, length: int = 0, digest: str | None = None) -> None:
        self.path = path
        kept = read_bytes(path, _RESTORE)[:length] if length else b""
        if len(kept) < length or (digest is not None and sha256(kept) != digest):
            raise DamagedRunError(
                f"{path} is damaged: its first {length} bytes are not those that were written; "
                + _RESTORE
            )
        self._digest = hashlib.sha256(kept)
        self.length = length
        with _write_errors(path):
            self._file = open_to_append(path)
            self._file.truncate(length)

    def append(self, line: str) -> None:
        """Adds a line and hands it to the operating system."""
        data = line.encode() + b"\n"
        with _write_errors(self.path):
            self._file.write(data)
            self._file.flush()
        self._digest.update(data)
        self.length += len(data)

    def sync(self) -> tuple[int, str]:
        """Waits until all lines are on the disk; their length in bytes and digest."""
        with _write_errors(self.path):
            os.fsync(self._file.fileno())
        return self.length, self._digest.hexdigest()

    def __enter__(self) -> "AppendedFile":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            with _write_errors(self.path):
                self._file.close()  # what a full disk refused is still in the buffer
        except RunError:
            if error is None:
                raise


@contextmanager
def _write_errors(path: Path, remedy: str = _RESUME) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(
            f"cannot write {path}: {error.strerror or error}. Files written before are intact: "
            f"{remedy}"
        ) from error
