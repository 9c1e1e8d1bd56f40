"""Ranks that differ, fail or never come: every one gets a message, in time."""

import threading
import time
from datetime import timedelta

import pytest
from torch._C._distributed_c10d import TCPStore

from adgn.distributed.errors import RankError
from adgn.distributed.ranks import ProcessRanks, Ranks


def on_threads(size, work, timeout=5.0):
    """What `work(ranks)` gives or raises on each rank; the exchanges of tensors are not set up."""
    limit = timedelta(seconds=20)
    store = TCPStore("127.0.0.1", 0, is_master=True, timeout=limit, wait_for_workers=False)
    found = [None] * size

    def run(rank):
        own = TCPStore("127.0.0.1", store.port, is_master=False, timeout=limit)
        try:
            with ProcessRanks(own, rank, size, timeout=timeout, joined=True) as ranks:
                found[rank] = work(ranks)
        except RankError as error:
            found[rank] = error
        except ValueError as error:
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_ranks_that_agree_and_ranks_that_differ():
    found = on_threads(3, lambda ranks: ranks.agree({"data": "a"}))
    assert found == [None, None, None]
    found = on_threads(3, lambda ranks: ranks.agree({"data": "b" if ranks.rank == 2 else "a"}))
    for error in found:
        assert str(error) == (
            "ranks differ in data: rank 0 has a, rank 2 b; give all ranks the same"
        )


def test_the_reason_of_one_reaches_all():
    def work(ranks):
        with ranks.telling():
            if ranks.rank == 1:
                raise ValueError("no such file")
            ranks.agree({"data": "a"})

    first, second = on_threads(2, work)
    assert "rank 1 failed: ValueError: no such file" in str(first)
    assert str(second) == "no such file"


def test_a_rank_that_never_comes():
    limit = timedelta(seconds=5)
    store = TCPStore("127.0.0.1", 0, is_master=True, timeout=limit, wait_for_workers=False)
    started = time.monotonic()
    with pytest.raises(RankError, match=r"ranks cannot start: no sign of life from rank 1"):
        ProcessRanks(store, 0, 2, timeout=0.5)
    assert time.monotonic() - started < 5
    with pytest.raises(RankError, match=r"ranks cannot start: it was ended"):
        ProcessRanks(store, 0, 2, timeout=30, watch=lambda: "it was ended")
    for arguments, message in (((2, 2), "rank=2 is not there among 2"), ((0, 2, 0), "timeout=0")):
        with pytest.raises(RankError, match=message):
            ProcessRanks(store, *arguments[:2], timeout=(*arguments, 1.0)[2])


def test_one_process_alone():
    alone = Ranks()
    assert alone.sums([2.0]) == [2.0] and alone.broadcast(b"x") == b"x"
    alone.agree({"data": "a"})
    with alone.telling():
        pass
