"""METIS; for a large graph in a process of its own.

It holds Python's lock, and a rank that partitions a graph must give signs of life meanwhile.
Nothing here imports torch, so that the process starts at once.
"""

import queue
import tempfile
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from adgn._util.processes import Answer, Worker
from adgn.distributed.errors import RankError

_POINTERS, _NEIGHBOURS, _OWNER = "pointers.npy", "neighbours.npy", "owner.npy"
_SMALL = 1_000_000  # entries: METIS is done in about the time that a process takes to start


def has_metis() -> bool:
    """Whether pymetis is installed."""
    return find_spec("pymetis") is not None


def metis(
    pointers: np.ndarray, neighbours: np.ndarray, parts: int, seed: int, node_cost: int
) -> np.ndarray:
    """The part of each node of a graph in CSR form, each with about as much work.

    A node's work is its number of neighbours and `node_cost`. A large graph goes to a process in
    files of the temporary folder (`TMPDIR`).
    """
    if not has_metis():
        raise ValueError(
            "method='metis' needs pymetis, which is not installed: pip install pymetis, or use "
            "method='ldg'"
        )
    if neighbours.size < _SMALL:
        return _part(pointers, neighbours, parts, seed, node_cost)
    with tempfile.TemporaryDirectory(prefix="adgn-metis-") as folder:
        np.save(Path(folder, _POINTERS), pointers)
        np.save(Path(folder, _NEIGHBOURS), neighbours)
        answers: queue.Queue[Answer] = queue.Queue()
        worker = Worker(f"{__name__}:serve", answers)
        try:
            worker.give({"folder": folder, "parts": parts, "seed": seed, "node_cost": node_cost})
            ended = answers.get().ended
            code = worker.end() if ended else None
        finally:
            worker.kill()  # it has nothing left to do, or nobody waits for it any more
        if ended:
            killed = " (killed; often for want of memory)" if code == -9 else ""
            raise RankError(
                f"the process of METIS ended with exit code {code}{killed}; what it said is above. "
                "The methods 'ldg' and 'blocks' do without it"
            )
        owner: np.ndarray = np.load(Path(folder, _OWNER))
        return owner


def serve(message: dict[str, Any], stop: threading.Event) -> None:
    """The work of the process."""
    folder = Path(message["folder"])
    pointers, neighbours = (
        np.load(folder / name, mmap_mode="r") for name in (_POINTERS, _NEIGHBOURS)
    )
    settings = (message[name] for name in ("parts", "seed", "node_cost"))
    np.save(folder / _OWNER, _part(pointers, neighbours, *settings))


def _part(
    pointers: np.ndarray, neighbours: np.ndarray, parts: int, seed: int, node_cost: int
) -> np.ndarray:
    import pymetis  # type: ignore[import-not-found, unused-ignore]

    _, owner = pymetis.part_graph(
        parts,
        pymetis.CSRAdjacency(pointers, neighbours),
        vweights=(np.diff(pointers) + node_cost).tolist(),
        options=pymetis.Options(seed=seed),
    )
    return np.asarray(owner)
