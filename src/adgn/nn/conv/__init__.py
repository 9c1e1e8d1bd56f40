"""PyG's convolutions on operators that are built once per graph: same parameters, same outputs."""

from adgn.nn.base import GraphConvolution
from adgn.nn.conv.cheb import ChebConv, chebyshev_terms
from adgn.nn.conv.directed import BothDirections, directed
from adgn.nn.conv.gat import GATConv
from adgn.nn.conv.gcn import GCNConv
from adgn.nn.conv.gcnii import GCN2Conv
from adgn.nn.conv.ggnn import GatedGraphConv
from adgn.nn.conv.gin import GINConv, GINEConv
from adgn.nn.conv.graphsage import SAGEConv

__all__ = ["BothDirections", "ChebConv", "GATConv", "GCN2Conv", "GCNConv", "GINConv", "GINEConv"]
__all__ += ["GatedGraphConv", "GraphConvolution", "SAGEConv", "chebyshev_terms", "directed"]
