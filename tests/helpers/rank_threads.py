"""Ranks as threads of one process, for what needs no `torch.distributed`."""

import threading
from datetime import timedelta

import torch
from torch._C._distributed_c10d import TCPStore

from adgn.distributed.errors import RankError
from adgn.distributed.ranks import ProcessRanks


class Meeting:
    """Exchanges between threads of one process."""

    def __init__(self, size):
        self.size = size
        self.barrier = threading.Barrier(size, timeout=20)
        self.given = [None] * size

    def of(self, rank):
        return _Exchange(self, rank)


class _Exchange:
    def __init__(self, meeting, rank):
        self.meeting, self.rank = meeting, rank

    def send(self, rows, out, into, place=None):
        meeting = self.meeting
        meeting.given[self.rank] = rows.split(out)
        meeting.barrier.wait()
        found = torch.cat([meeting.given[q][self.rank] for q in range(meeting.size)])
        meeting.barrier.wait()
        assert found.size(0) == sum(into)
        return lambda: found if place is None else place.copy_(found)


def on_ranks(size, work):
    """What `work(rank, exchange)` gives on each rank."""
    meeting, found, errors = Meeting(size), [None] * size, []

    def run(rank):
        try:
            found[rank] = work(rank, meeting.of(rank))
        except BaseException as error:
            errors.append(error)
            meeting.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found


def on_store(size, work, timeout=5.0):
    """What `work(ranks)` gives or raises on each rank; the exchanges of tensors are not set up."""
    limit = timedelta(seconds=20)
    store = TCPStore("127.0.0.1", 0, is_master=True, timeout=limit, wait_for_workers=False)
    found = [None] * size

    def run(rank):
        own = TCPStore("127.0.0.1", store.port, is_master=False, timeout=limit)
        try:
            with ProcessRanks(own, rank, size, timeout=timeout, joined=True) as ranks:
                found[rank] = work(ranks)
        except (RankError, ValueError) as error:
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
