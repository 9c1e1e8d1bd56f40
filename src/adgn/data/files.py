"""Prepared data sets: safetensors files, whole or absent, with a digest of their tensors."""

import contextlib
import glob
import hashlib
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import filelock
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from adgn._util.files import remove_temporaries, replaced_file
from adgn.data.root import ROOT_VARIABLE, DamagedFileError, DataError

logger = logging.getLogger(__name__)

_DIGEST_KEY = "sha256"


def sha256_of_file(path: Path) -> str:
    """The SHA-256 digest of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_of_tensors(tensors: Mapping[str, Tensor]) -> str:
    """The SHA-256 digest of named tensors: names, types, shapes and contents."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)};".encode())
        digest.update(tensor.numpy().tobytes() if tensor.ndim == 0 else tensor.numpy().data)
    return digest.hexdigest()


def cache_path(folder: Path, name: str, settings: Mapping[str, object]) -> Path:
    """The file for a data set made with these settings; other settings give another file."""
    text = json.dumps(settings, sort_keys=True)
    return folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.safetensors"


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors to a safetensors file that is whole or absent, whatever happens meanwhile."""
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    with _explained_write_errors(path), replaced_file(path) as temporary:
        save_file(contiguous, temporary, {_DIGEST_KEY: sha256_of_tensors(contiguous)})


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read what `write_tensors` wrote; raise `DamagedFileError` where it was changed."""
    try:
        # Read, not mapped: a mapped file that changes later would change the tensors with it, and
        # one that is cut off would end the process.
        with safe_open(path, framework="pt", backend="pread") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise
    except (SafetensorError, OSError, ValueError) as error:
        raise DamagedFileError(
            f"{path} is damaged ({error}); delete it to have it made again"
        ) from error
    if metadata.get(_DIGEST_KEY) != sha256_of_tensors(tensors):
        raise DamagedFileError(
            f"{path} is damaged (its contents do not match its checksum); "
            "delete it to have it made again"
        )
    return tensors


@contextlib.contextmanager
def _explained_write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise DataError(
            f"cannot write {path}: {error}. Make room or give a writable folder as root or in "
            f"the environment variable {ROOT_VARIABLE}"
        ) from error


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock of a file to be made, or wait for it; what a dead process left is removed."""
    with _explained_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path.with_name(f"{path.name}.lock"))
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            logger.warning("another process is preparing %s; waiting for it", path)
            lock.acquire()
    try:
        remove_temporaries(path.parent, glob.escape(path.name))
        yield
    finally:
        lock.release()


def load_or_build(path: Path, build: Callable[[], Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Read a prepared file; where there is none (or a damaged one), one process builds it first."""
    with contextlib.suppress(FileNotFoundError, DamagedFileError):
        return read_tensors(path)
    with exclusive(path):
        # Once more, and only now with a warning: another process may have made it meanwhile.
        try:
            return read_tensors(path)
        except FileNotFoundError:
            pass
        except DamagedFileError as error:
            warnings.warn(f"{error}; making it again now", stacklevel=3)
        write_tensors(path, build())
        return read_tensors(path)
