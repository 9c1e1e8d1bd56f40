"""Layers and networks."""

from adgn.nn.aggregation import GCNAggregation, LinearAggregation, SumAggregation
from adgn.nn.antisymmetric import AntiSymmetricConv
from adgn.nn.embedding import IntegerEmbedding
from adgn.nn.network import GraphNetwork
from adgn.nn.registry import (
    ModelOptions,
    ModelSpec,
    available_models,
    build_model,
    model_spec,
    register_model,
    unregister_model,
)

# isort: split
# The models come last: their files may import from here.
from adgn.nn.models import ADGN

__all__ = [
    "ADGN",
    "AntiSymmetricConv",
    "GCNAggregation",
    "GraphNetwork",
    "IntegerEmbedding",
    "LinearAggregation",
    "ModelOptions",
    "ModelSpec",
    "SumAggregation",
    "available_models",
    "build_model",
    "model_spec",
    "register_model",
    "unregister_model",
]
