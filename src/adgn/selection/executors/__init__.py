"""Where workers run. A new place is a file with `run` and a line here."""

from adgn.selection.executors.base import Executor, Poll
from adgn.selection.executors.local import LocalExecutor
from adgn.selection.executors.ray import RayExecutor

__all__ = ["Executor", "LocalExecutor", "Poll", "RayExecutor"]
