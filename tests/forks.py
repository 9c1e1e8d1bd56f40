"""Functions called in a forked child."""

import os
import signal
import warnings
from collections.abc import Callable

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")


def status_of_child(function: Callable[[], object], seconds: int = 20) -> int:
    """0 where a forked child gets through `function`; a child that hangs is killed by a signal."""
    with warnings.catch_warnings():
        # Later versions of Python warn of a fork beside threads, which is what is tested.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        try:
            function()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
