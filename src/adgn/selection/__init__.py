"""Model selection: spaces, studies (Optuna), and where trials run (processes, Ray)."""

from adgn.selection.api import StudyFolder, select
from adgn.selection.definition import StudyDefinition
from adgn.selection.errors import (
    ExecutorError,
    SelectionError,
    SpaceError,
    StorageError,
    StudyMismatchError,
)
from adgn.selection.executors import LocalExecutor, RayExecutor
from adgn.selection.forecast import Forecast
from adgn.selection.halving import Rung
from adgn.selection.protocols import Protocol, Run, Summary, protocol_of
from adgn.selection.results import SelectionResult
from adgn.selection.spaces import grid_points, grid_size, named_space, read_space
from adgn.selection.status import StudyStatus, study_status

__all__ = [
    "ExecutorError",
    "Forecast",
    "LocalExecutor",
    "Protocol",
    "RayExecutor",
    "Run",
    "Rung",
    "SelectionError",
    "SelectionResult",
    "SpaceError",
    "StorageError",
    "StudyDefinition",
    "StudyFolder",
    "StudyMismatchError",
    "StudyStatus",
    "Summary",
    "grid_points",
    "grid_size",
    "named_space",
    "protocol_of",
    "read_space",
    "select",
    "study_status",
]
