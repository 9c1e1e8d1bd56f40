"""Ranks that differ, fail or never come: every one gets a message, in time."""

import queue
import time
from datetime import timedelta

import pytest
from torch import distributed
from torch._C._distributed_c10d import TCPStore

from adgn._util.processes import Worker
from adgn.distributed.errors import RankError
from adgn.distributed.ranks import ProcessRanks, Ranks
from tests.helpers.rank_threads import on_store


def test_ranks_that_agree_and_ranks_that_differ():
    found = on_store(3, lambda ranks: ranks.agree({"data": "a"}))
    assert found == [None, None, None]
    found = on_store(3, lambda ranks: ranks.agree({"data": "b" if ranks.rank == 2 else "a"}))
    for error in found:
        assert str(error) == (
            "ranks differ in data: rank 0 has a, rank 2 b; give all ranks the same"
        )


def test_a_rank_that_is_late_finds_the_difference_by_itself(monkeypatch):
    """Rank 0 misses what rank 2 says until rank 1 has failed over it."""
    look, missed = ProcessRanks._get, []

    def late(ranks, key, rank):
        if (ranks.rank, key, rank) == (0, "facts1", 2) and not missed:
            missed.append(key)
            while look(ranks, "failed", 1) is None:
                time.sleep(0.01)
            return None
        return look(ranks, key, rank)

    monkeypatch.setattr(ProcessRanks, "_get", late)
    found = on_store(3, lambda ranks: ranks.agree({"data": "b" if ranks.rank == 2 else "a"}))
    assert missed
    assert {str(error).partition(";")[0] for error in found} == {
        "ranks differ in data: rank 0 has a, rank 2 b"
    }


def test_the_reason_of_one_reaches_all():
    def work(ranks):
        with ranks.reporting_errors():
            if ranks.rank == 1:
                raise ValueError("no such file")
            ranks.agree({"data": "a"})

    first, second = on_store(2, work)
    assert "rank 1 failed: ValueError: no such file" in str(first)
    assert str(second) == "no such file"


def test_ranks_on_gpus_need_nccl(monkeypatch):
    monkeypatch.setattr(distributed, "is_nccl_available", lambda: False)
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    with pytest.raises(RankError, match="device='cuda': this torch has no NCCL"):
        ProcessRanks(store, 0, 1, device="cuda")


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
    with alone.reporting_errors():
        pass


@pytest.mark.parametrize("words", [0, 12])
def test_a_rank_that_is_alive_but_never_comes(warm_workers, words):
    """One that says how far it is is waited for, however long it takes; another is not."""
    limit = timedelta(seconds=20)
    store = TCPStore("127.0.0.1", 0, is_master=True, timeout=limit, wait_for_workers=False)
    found = [queue.Queue(), queue.Queue()]
    workers = [Worker("tests.helpers.rank_jobs:prepare", answers, threads=1) for answers in found]
    try:
        for rank, worker in enumerate(workers):
            place = {"rank": rank, "port": store.port}
            worker.give({**place, "prepare_timeout": 2.0, "seconds": 5.0, "words": words})
        answer = found[0].get(timeout=30).content
        other = found[1].get(timeout=30).content
    finally:
        Worker.stop_all(workers, 5.0)
    if words:
        assert answer["error"] is other["error"] is None
        assert answer["seconds"] > 4
    else:
        assert answer["seconds"] < 4
        assert answer["error"].startswith(
            "ranks cannot check that they do the same: rank 1 is alive, but has been reading the "
            "data for 2 s without reporting"
        )
        assert "--prepare-timeout (now 2)" in answer["error"]
