"""Random numbers of a run, and where and with which numbers it computes.

Generators are the process's, so one thread trains at a time.
"""

import hashlib
import os
import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from adgn.training.errors import ConfigError, TrainingError


def resolve_device(name: str) -> torch.device:
    """The device of a name, which must be there; `"auto"` is a GPU where there is one."""
    check_device_name(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"device={name!r} is not there: torch sees {torch.cuda.device_count()} GPUs; use 'cpu'"
        )
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, ImportError) as error:
        # "meta" holds no numbers; of others torch says in many ways that they are not here.
        raise ConfigError(
            f"device={name!r} cannot be computed on here; use 'cpu', 'cuda', 'cuda:1' or 'auto'"
        ) from error
    return device


def check_device_name(name: str) -> None:
    """Raises unless this is the name of a device, on this machine or another one."""
    if name == "auto":
        return
    try:
        torch.device(name)
    except RuntimeError:
        raise ConfigError(
            f"device={name!r} is not known; use 'cpu', 'cuda', 'cuda:1' or 'auto'"
        ) from None


@contextmanager
def thread_count(count: int) -> Iterator[None]:
    """Torch's number of threads inside: results depend on it in their last bits."""
    before = torch.get_num_threads()
    if count != before:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Takes numbers below the smallest normal one (1.2e-38 in single precision) for zero.

    Weight decay and vanishing gradients bring weights, gradients and the optimiser's averages
    down there and keep them there for hundreds of epochs, where a processor takes several times as
    long for each operation; no score can tell such a number from zero. The processor's setting
    holds for the calling thread (and those that it starts) and is put back at the end.
    """
    before = flushing_denormals()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def flushing_denormals() -> bool:
    """Whether the processor does so now; torch has no word for it, so it is tried."""
    return float(torch.tensor(1e-39, dtype=torch.float32).mul(0.5)) == 0.0


RandomState = Mapping[str, Any]


def derived_seed(*parts: int | str) -> int:
    """A seed that depends on all parts and on nothing else."""
    text = "\0".join(str(part) for part in parts).encode()
    # 32 bits: NumPy's generator takes no more.
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "little")


def seed_all(seed: int) -> None:
    """Seeds the global generators of Python, NumPy and torch (all devices)."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def random_state() -> dict[str, Any]:
    """The state of all global generators, as numbers and tensors."""
    version, words, gauss = random.getstate()
    name, numpy_words, position, has_gauss, cached_gauss = np.random.get_state()
    state: dict[str, Any] = {
        "python": {"version": version, "words": torch.tensor(words), "gauss": gauss},
        "numpy": {
            "name": str(name),
            "words": torch.from_numpy(np.asarray(numpy_words).astype(np.int64)),
            "position": int(position),
            "has_gauss": int(has_gauss),
            "gauss": float(cached_gauss),
        },
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def restore_random_state(state: RandomState) -> None:
    """Puts the global generators into a state that `random_state` gave."""
    python, numpy = state["python"], state["numpy"]
    random.setstate((python["version"], tuple(python["words"].tolist()), python["gauss"]))
    words = numpy["words"].numpy().astype(np.uint32)
    rest = (numpy["position"], numpy["has_gauss"], numpy["gauss"])
    np.random.set_state((numpy["name"], words, *rest))
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        # The state may come from a machine with more GPUs.
        torch.cuda.set_rng_state_all(list(state["cuda"])[: torch.cuda.device_count()])


class _Holder:
    """The thread that uses the global generators; a new one in a forked process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.runs = 0  # that the thread has under way: one, or a run inside a callback of another


_holder = _Holder()


def _renew_holder() -> None:
    global _holder
    _holder = _Holder()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_holder)


@contextmanager
def own_randomness(start: int | RandomState, *, whole_run: bool = False) -> Iterator[None]:
    """Random numbers from `start` inside; the global generators as they were afterwards.

    Args:
        start: A seed, or a state to go on from.
        whole_run: Whether this takes long: another thread is then refused (`TrainingError`), and
            does not wait.
    """
    holder = _holder
    while not holder.lock.acquire(timeout=0.05):
        if holder.runs:
            raise TrainingError(
                "another thread of this process is training; both runs would draw from the same "
                "random generators and give other results than alone. Wait for it, or train in "
                "processes of their own (`adgn train`, `adgn select --workers`)"
            )
    try:
        holder.runs += whole_run
        before = random_state()
        try:
            if isinstance(start, int):
                seed_all(start)
            else:
                restore_random_state(start)
            yield
        finally:
            restore_random_state(before)
            holder.runs -= whole_run
    finally:
        holder.lock.release()
