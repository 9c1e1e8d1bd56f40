"""Callbacks of training runs."""

from adgn.training import Callback


class StopAfter(Callback):
    """Asks for a stop after a number of steps, as Ctrl-C does."""

    def __init__(self, steps):
        self.steps = steps

    def on_step(self, trainer):
        self.steps -= 1
        if self.steps == 0:
            trainer.request_stop()
