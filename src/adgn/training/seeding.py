"""Random numbers of a run; generators are the process's, so one thread trains at a time."""

import hashlib
import os
import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from adgn.training.errors import TrainingError

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
