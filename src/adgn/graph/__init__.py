"""What a graph is to the layers: a sparse operator, validated and normalised once per graph."""

from adgn.graph.adjacency import Adjacency, EdgeLayout, graph_operator, sparse_features
from adgn.graph.attention import attend, edge_softmax
from adgn.graph.blocks import GraphBlocks, SelectedGraphs
from adgn.graph.cache import cache_info, clear_cache
from adgn.graph.direction import DIRECTIONS, Direction, OperatorDirection, turned
from adgn.graph.edge_operator import EdgeOperator, Operator, edge_operator
from adgn.graph.edges import edge_list, edges_with_loops, weighted_edges
from adgn.graph.hops import hop_operator
from adgn.graph.kernels import edge_dot, multiply_reference
from adgn.graph.native.library import Backend, backend, set_backend
from adgn.graph.needed import NeededNodes, needed_nodes
from adgn.graph.operator import CSR, SparseOperator, SparsePattern
from adgn.graph.partitioned import PartitionedGraph, PartitionedOperator
from adgn.graph.parts import GraphPart, cut_part
from adgn.graph.similarity import edge_cosine
from adgn.graph.two_way import GraphOperator, TwoWayOperator

__all__ = ["CSR", "DIRECTIONS", "Adjacency", "Backend", "Direction", "EdgeLayout", "EdgeOperator"]
__all__ += ["GraphBlocks", "GraphOperator", "Operator", "OperatorDirection", "PartitionedGraph"]
__all__ += ["PartitionedOperator", "SelectedGraphs"]
__all__ += ["SparseOperator", "SparsePattern", "TwoWayOperator", "backend", "cache_info"]
__all__ += ["clear_cache", "edge_list", "edge_operator", "edges_with_loops", "graph_operator"]
__all__ += ["hop_operator", "multiply_reference", "set_backend", "sparse_features", "turned"]
__all__ += ["GraphPart", "NeededNodes", "cut_part", "needed_nodes", "weighted_edges"]
__all__ += ["attend", "edge_cosine", "edge_dot", "edge_softmax"]
