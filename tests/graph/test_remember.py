import threading

from adgn.graph.cache import lazy_property
from tests.forks import needs_fork, status_of_child


class Slow:
    """Its property is worked out when `done` is set."""

    def __init__(self):
        self.reached, self.done = threading.Event(), threading.Event()
        self.times = 0

    @lazy_property
    def answer(self):
        """What was asked."""
        self.times += 1
        self.reached.set()
        return self.done.wait(60)


def test_a_lazy_property_is_worked_out_once():
    slow = Slow()
    assert slow.times == 0
    slow.done.set()
    assert (slow.answer, slow.answer, slow.times) == (True, True, 1)
    assert Slow.answer.__doc__ == "What was asked."


@needs_fork
def test_a_process_forked_while_a_property_is_worked_out_can_work_it_out():
    slow, quick = Slow(), Slow()
    thread = threading.Thread(target=lambda: slow.answer)
    thread.start()
    quick.done.set()
    try:
        assert slow.reached.wait(60)
        assert status_of_child(lambda: quick.answer) == 0
    finally:
        slow.done.set()
        thread.join()
