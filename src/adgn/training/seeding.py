"""A run has random numbers of its own: the caller's generators are left as they were."""

import hashlib
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

__all__ = ["derived_seed", "own_randomness", "random_state", "restore_random_state", "seed_all"]

RandomState = Mapping[str, Any]


def derived_seed(*parts: int | str) -> int:
    """A seed that depends on all parts and on nothing else.

    Example:
        >>> derived_seed(1, "order", 2) == derived_seed(1, "order", 2)
        True
        >>> derived_seed(1, "order", 2) == derived_seed(1, "order", 3)
        False
    """
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
    np.random.set_state(
        (
            numpy["name"],
            numpy["words"].numpy().astype(np.uint32),
            numpy["position"],
            numpy["has_gauss"],
            numpy["gauss"],
        )
    )
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        # The state may come from a machine with more GPUs.
        torch.cuda.set_rng_state_all(list(state["cuda"])[: torch.cuda.device_count()])


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Random numbers from `seed` inside; the global generators as they were afterwards.

    Example:
        >>> import torch
        >>> before = torch.get_rng_state()
        >>> with own_randomness(7):
        ...     first = torch.rand(1)
        >>> with own_randomness(7):
        ...     first.equal(torch.rand(1)), before.equal(torch.get_rng_state())
        (True, False)
        >>> before.equal(torch.get_rng_state())
        True
    """
    before = random_state()
    seed_all(seed)
    try:
        yield
    finally:
        restore_random_state(before)
