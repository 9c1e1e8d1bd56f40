"""Workers in this process, for tests of what goes on around them."""

import threading

from adgn._util.processes import Answer
from adgn.experiments.driver import ReproductionCallback
from adgn.experiments.steps import handle


class HereWorker:
    """Does a step at once, in this process; dies instead as often as `deaths` says."""

    deaths = 0
    code = -9

    def __init__(self, function, answers, *, threads, log):
        assert function == "adgn.experiments.steps:handle"
        self.answers = answers
        self.log = log

    def give(self, message):
        if HereWorker.deaths > 0:
            HereWorker.deaths -= 1
            self.answers.put(Answer(self, ended=True))
            return
        self.answers.put(Answer(self, handle({**message, "threads": 1}, threading.Event())))

    def end(self):
        return self.code

    def last_line(self):
        return "Killed"

    @staticmethod
    def stop_all(workers):
        pass


class Steps(ReproductionCallback):
    """Remembers what happened."""

    def __init__(self):
        self.begun: list[tuple[str, int]] = []
        self.ended: list[tuple[str, int, str]] = []

    def step_begins(self, job, step):
        self.begun.append((job.plan.name, step))

    def step_ends(self, job, step, outcome):
        self.ended.append((job.plan.name, step, outcome))
