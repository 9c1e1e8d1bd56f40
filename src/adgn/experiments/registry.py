"""All experiments by name. A new one is a file with its `EXPERIMENT`, a line here, and budgets."""

from collections.abc import Mapping

from adgn._util.suggestions import unknown_name
from adgn.experiments import (
    benchmarks,
    depth,
    depth_heterophily,
    heterophily,
    property,
    property_time,
    trees,
)
from adgn.experiments.definition import Experiment

__all__ = ["EXPERIMENTS", "find_experiment"]

EXPERIMENTS: Mapping[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        property,
        property_time,
        benchmarks,
        heterophily,
        trees,
        depth,
        depth_heterophily,
    )
}


def find_experiment(name: str) -> Experiment:
    """The experiment of this name.

    Example:
        >>> find_experiment("heterophilly")
        Traceback (most recent call last):
        ValueError: experiment='heterophilly' is not known. Did you mean 'heterophily'? ...
    """
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
