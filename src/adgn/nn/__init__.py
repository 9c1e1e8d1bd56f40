"""Layers and networks."""

from adgn.nn.aggregation import GCNAggregation, LinearAggregation, SumAggregation
from adgn.nn.antisymmetric import AntiSymmetricConv
from adgn.nn.embedding import IntegerEmbedding
from adgn.nn.models.adgn import ADGN
from adgn.nn.network import GraphNetwork

__all__ = [
    "ADGN",
    "AntiSymmetricConv",
    "GCNAggregation",
    "GraphNetwork",
    "IntegerEmbedding",
    "LinearAggregation",
    "SumAggregation",
]
