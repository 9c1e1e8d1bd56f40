"""Graph in, graph out: rewiring, direction, components; applied before any method."""

from adgn.transforms.base import (
    EdgeGraph,
    Transform,
    TransformLike,
    apply_each,
    available_transforms,
    find_transform,
    register_transform,
    resolve_transforms,
    unregister_transform,
)
from adgn.transforms.components import LargestComponent
from adgn.transforms.curvature import balanced_forman_curvature
from adgn.transforms.digl import DIGL
from adgn.transforms.direction import FullyAdjacent, Reverse, Undirected
from adgn.transforms.sdrf import SDRF

__all__ = ["DIGL", "SDRF", "EdgeGraph", "FullyAdjacent", "LargestComponent", "Reverse", "Transform"]
__all__ += ["TransformLike", "Undirected", "apply_each", "available_transforms"]
__all__ += ["balanced_forman_curvature", "find_transform", "register_transform"]
__all__ += ["resolve_transforms", "unregister_transform"]
