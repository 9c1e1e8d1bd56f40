"""Groups of ranks that live as long as the tests of a module and train many examples."""

import queue
from datetime import timedelta

import pytest
from torch._C._distributed_c10d import TCPStore

from adgn._util import processes
from adgn._util.processes import Worker
from tests import warm


class Group:
    """Long-lived processes, each a rank."""

    def __init__(self, size):
        self.broken = False
        self.store = TCPStore(
            "127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=60), wait_for_workers=False
        )
        self.answers = [queue.Queue() for _ in range(size)]
        self.workers = [
            Worker("tests.helpers.rank_jobs:handle", self.answers[rank], threads=1)
            for rank in range(size)
        ]
        self.call("join", each=lambda rank: {"rank": rank, "size": size, "port": self.store.port})

    def call(self, job, each=lambda rank: {}, **message):
        """What each rank answers."""
        assert not self.broken, "a rank died before; its traceback is above"
        self.broken = True
        for rank, worker in enumerate(self.workers):
            worker.give({"job": job, **message, **each(rank)})
        found = [answers.get(timeout=30) for answers in self.answers]
        self.broken = any(answer.ended for answer in found)
        assert not self.broken, "a rank died; its traceback is above"
        return [answer.content for answer in found]

    def end(self):
        Worker.stop_all(self.workers, 5.0)


@pytest.fixture(scope="session")
def groups():
    """Groups by their size, made when first asked for."""
    made = {}

    def group(size):
        if size not in made:
            made[size] = Group(size)
        return made[size]

    patch = pytest.MonkeyPatch()
    patch.setattr(processes, "subprocess", warm.WARM)
    yield group
    for each in made.values():
        each.end()
    patch.undo()
