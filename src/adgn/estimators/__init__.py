"""Fit, predict and score on a user's graph, in scikit-learn's manner."""

from adgn.estimators.base import GraphEstimator, NotFittedError
from adgn.estimators.comparison import ComparedModel, compare
from adgn.estimators.estimators import (
    GraphClassifier,
    GraphRegressor,
    NodeClassifier,
    NodeRegressor,
)
from adgn.estimators.explanation import Explanation
from adgn.estimators.folder import ModelFolderError, load

ESTIMATORS: dict[str, type[GraphEstimator]] = {
    estimator.__name__: estimator
    for estimator in (NodeClassifier, NodeRegressor, GraphClassifier, GraphRegressor)
}

__all__ = [
    "ESTIMATORS",
    "ComparedModel",
    "Explanation",
    "GraphClassifier",
    "GraphEstimator",
    "GraphRegressor",
    "ModelFolderError",
    "NodeClassifier",
    "NodeRegressor",
    "NotFittedError",
    "compare",
    "load",
]
