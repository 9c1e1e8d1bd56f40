"""Anti-symmetric deep graph networks: distant nodes of a graph talk to each other."""

from typing import TYPE_CHECKING

from adgn._util.registry import lazy_exports, provide

if TYPE_CHECKING:  # imported on first use: torch takes seconds
    from adgn import (
        analysis,
        bench,
        data,
        estimators,
        experiments,
        graph,
        nn,
        report,
        selection,
        tasks,
        training,
        transforms,
    )
    from adgn._util.registry import load_plugin
    from adgn._version import __version__
    from adgn.analysis.probe.api import probe
    from adgn.analysis.subject import analyze
    from adgn.data import Graph
    from adgn.estimators import (
        GraphClassifier,
        GraphRegressor,
        NodeClassifier,
        NodeRegressor,
        load,
    )
    from adgn.nn import ADGN, AntiSymmetricConv, build_model
    from adgn.selection import select
    from adgn.training import (
        RunResult,
        TrainConfig,
        Trainer,
        evaluate,
        predict,
        resume,
        train,
    )
else:
    __getattr__, __dir__ = lazy_exports(__name__)

provide("task", "adgn.tasks")  # `training` finds there what a later room registers

__all__ = [
    "ADGN",
    "AntiSymmetricConv",
    "Graph",
    "GraphClassifier",
    "GraphRegressor",
    "NodeClassifier",
    "NodeRegressor",
    "RunResult",
    "TrainConfig",
    "Trainer",
    "__version__",
    "analysis",
    "analyze",
    "bench",
    "build_model",
    "data",
    "estimators",
    "evaluate",
    "experiments",
    "graph",
    "load",
    "load_plugin",
    "nn",
    "predict",
    "probe",
    "report",
    "resume",
    "select",
    "selection",
    "tasks",
    "train",
    "training",
    "transforms",
]
