"""Layers and networks."""

from adgn.nn.aggregation import (
    GCNAggregation,
    LinearAggregation,
    SumAggregation,
    available_aggregations,
    register_aggregation,
    unregister_aggregation,
)
from adgn.nn.antisymmetric import AntiSymmetricConv
from adgn.nn.network import GraphNetwork, IntegerEmbedding, Model
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

__all__ = ["ADGN", "AntiSymmetricConv", "GCNAggregation", "GraphNetwork", "IntegerEmbedding"]
__all__ += ["LinearAggregation", "Model", "ModelOptions", "ModelSpec", "SumAggregation"]
__all__ += ["available_aggregations", "available_models", "build_model", "model_spec"]
__all__ += ["register_aggregation", "register_model", "unregister_aggregation", "unregister_model"]
