"""The latest resumable state of a run: tensors in a safetensors file, the rest in a JSON manifest.

The manifest names that file with its digest. It is replaced last and in one step, so at any moment
it describes a whole state.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from adgn._util.files import open_to_append, parse_json, read_file, remove_temporaries, write_file
from adgn._util.names import check_name
from adgn._version import __version__
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


# Raised when states of an older version can no longer be read as they are.
FORMAT = 1
_MANIFEST = "manifest.json"
_TENSOR, _TUPLE, _PAIRS = "$tensor", "$tuple", "$pairs"
_METADATA = "adgn"
_REMEDY = "start the run again in another directory"


def pack(tree: Any) -> tuple[Any, dict[str, Tensor]]:
    """A state as a JSON-ready tree and the tensors that it names."""
    tensors: dict[str, Tensor] = {}

    def visit(value: Any, *path: object) -> Any:
        place = "/".join(str(part) for part in path)
        if isinstance(value, Tensor):
            # A copy of its own: safetensors refuses tensors that share memory, as tied weights do.
            tensors[place] = value.detach().to("cpu", copy=True).contiguous()
            return {_TENSOR: place}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, tuple):
            return {_TUPLE: [visit(item, *path, i) for i, item in enumerate(value)]}
        if isinstance(value, list):
            return [visit(item, *path, i) for i, item in enumerate(value)]
        if isinstance(value, Mapping):
            items = {key: visit(item, *path, key) for key, item in value.items()}
            if all(isinstance(key, str) and not key.startswith("$") for key in items):
                return items
            return {_PAIRS: [[key, item] for key, item in items.items()]}
        raise TypeError(
            f"the state has a {type(value).__name__} at {place}; it can hold tensors, numbers, "
            "strings, None, and dicts, lists and tuples of them"
        )

    return visit(tree), tensors


def unpack(tree: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The state that `pack` took apart."""
    if isinstance(tree, list):
        return [unpack(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if _TENSOR in tree:
        return tensors[tree[_TENSOR]]
    if _TUPLE in tree:
        return tuple(unpack(item, tensors) for item in tree[_TUPLE])
    if _PAIRS in tree:
        return {key: unpack(item, tensors) for key, item in tree[_PAIRS]}
    return {key: unpack(item, tensors) for key, item in tree.items()}


def bytes_of_state(state: Mapping[str, Any]) -> bytes:
    """A state as bytes, for other processes; `state_of_bytes` reads them."""
    tree, tensors = pack(state)
    return save(tensors, {_METADATA: _canonical(tree).decode()})


def state_of_bytes(data: bytes) -> dict[str, Any]:
    """The state that `bytes_of_state` wrote.

    Example:
        >>> state_of_bytes(bytes_of_state({"rates": (1.5, None), 3: torch.ones(1)}))
        {'rates': (1.5, None), 3: tensor([1.])}
    """
    header = parse_json(data[8 : 8 + int.from_bytes(data[:8], "little")])
    state: dict[str, Any] = unpack(parse_json(header["__metadata__"][_METADATA]), load(data))
    return state


class StateStore:
    """The folder of the latest state, made with the first one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def manifest(self) -> Path:
        """The file that says which state is the latest."""
        return self.folder / _MANIFEST

    def exists(self) -> bool:
        """Whether there is a state."""
        return self.manifest.exists()

    def remove_leftovers(self) -> None:
        """Removes what a killed process left; the run must be locked."""
        for name in ("tensors-*", _MANIFEST):
            remove_temporaries(self.folder, name)

    def save(self, state: Mapping[str, Any]) -> None:
        """Replaces the latest state; where this fails the earlier one stays."""
        tree, tensors = pack(state)
        data = save(tensors)
        digest = sha256(data)
        name = f"tensors-{digest[:16]}.safetensors"
        content = {
            "format": FORMAT,
            "adgn": __version__,
            "tensors": {"file": name, "sha256": digest},
            "state": tree,
        }
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot make {self.folder}: {error.strerror or error}") from error
        write_atomically(self.folder / name, data)
        text = _canonical({"sha256": sha256(_canonical(content)), **content})
        write_atomically(self.manifest, text)
        for old in self.folder.glob("tensors-*.safetensors"):
            if old.name != name:
                old.unlink(missing_ok=True)

    def load(self) -> dict[str, Any]:
        """The latest state; raises where it is damaged or a newer version wrote it."""
        content = self._read_manifest()
        try:
            path = self.folder / check_name(content["tensors"]["file"], "tensors.file")
        except ValueError as error:
            raise DamagedRunError(f"{self.manifest} is damaged ({error}); {_REMEDY}") from error
        data = read_bytes(path, _REMEDY)
        if sha256(data) != content["tensors"]["sha256"]:
            raise DamagedRunError(f"{path} is damaged (its checksum is wrong); {_REMEDY}")
        state: dict[str, Any] = unpack(content["state"], load(data))
        return state

    def _read_manifest(self) -> dict[str, Any]:
        data = read_bytes(self.manifest, _REMEDY)
        try:
            content = parse_json(data)
            written = content["format"]
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedRunError(f"{self.manifest} is damaged ({error}); {_REMEDY}") from error
        if isinstance(written, int) and written > FORMAT:
            raise RunError(
                f"{self.manifest} was written by a newer adgn ({content.get('adgn')}, state format "
                f"{written}); this is {__version__}, which reads formats up to {FORMAT}: upgrade "
                "adgn to go on with this run"
            )
        digest = content.pop("sha256", None)
        if digest != sha256(_canonical(content)):
            raise DamagedRunError(f"{self.manifest} is damaged (its checksum is wrong); {_REMEDY}")
        return content  # type: ignore[no-any-return]


def save_weights(path: Path, weights: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Writes a state dict as safetensors, with `about` and a digest in its metadata."""
    tensors = {
        name: weight.detach().to("cpu", copy=True).contiguous() for name, weight in weights.items()
    }
    content = {**about, "adgn": __version__, "sha256": sha256(save(tensors))}
    # One metadata entry: several would be written in an order that differs from run to run.
    write_atomically(path, save(tensors, {_METADATA: _canonical(content).decode()}))


def load_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights and the metadata that `save_weights` wrote."""
    data = read_bytes(path, "the run has no best weights yet: go on with `adgn resume`")
    try:
        tensors = load(data)
        header = parse_json(data[8 : 8 + int.from_bytes(data[:8], "little")])
        about = parse_json(header["__metadata__"][_METADATA])
        digest = about.pop("sha256")
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise DamagedRunError(f"{path} is damaged ({error}); put the file back") from error
    if digest != sha256(save(tensors)):
        raise DamagedRunError(f"{path} is damaged (its checksum is wrong); put the file back")
    return tensors, about


def load_into(model: torch.nn.Module, weights: Mapping[str, Tensor], source: object) -> None:
    """Loads weights into a model; says what differs where they belong to another one."""
    own = model.state_dict()
    found = [f"{name} is missing" for name in sorted(own.keys() - weights.keys())]
    found += [f"{name} is not in the model" for name in sorted(weights.keys() - own.keys())]
    for name in own:
        if name in weights and own[name].shape != weights[name].shape:
            found.append(f"{name} is {list(weights[name].shape)}, not {list(own[name].shape)}")
    if found:
        raise RunError(
            f"{source} holds weights of another model than {type(model).__name__}: "
            + "; ".join(found[:4])
            + (f"; and {len(found) - 4} more" if len(found) > 4 else "")
        )
    model.load_state_dict(dict(weights))


def _canonical(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
