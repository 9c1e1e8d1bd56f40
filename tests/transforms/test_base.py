"""Transforms by name and settings, in a list, and of many graphs side by side."""

import pytest
import torch
from torch_geometric.data import Data

from adgn.transforms import (
    DIGL,
    SDRF,
    EdgeGraph,
    FullyAdjacent,
    LargestComponent,
    Reverse,
    Transform,
    Undirected,
    apply_each,
    available_transforms,
    balanced_forman_curvature,
    find_transform,
    register_transform,
    resolve_transforms,
    unregister_transform,
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ()),
        ("none", ()),
        ([], ()),
        ("reverse", (Reverse(),)),
        (Reverse(), (Reverse(),)),
        ("sdrf:iterations=20,seed=3", (SDRF(iterations=20, seed=3),)),
        ("sdrf: temperature=none, undirected=true", (SDRF(temperature=None, undirected=True),)),
        ("digl:kernel=heat,t=2.5", (DIGL(kernel="heat", t=2.5),)),
        ({"name": "largest_component", "kind": "strong"}, (LargestComponent(kind="strong"),)),
        ("undirected | digl:k=4", (Undirected(), DIGL(k=4))),
        (["reverse", {"name": "fa"}, DIGL(k=2)], (Reverse(), FullyAdjacent(), DIGL(k=2))),
    ],
)
def test_ways_to_name_transforms(given, expected):
    assert resolve_transforms(given) == expected


@pytest.mark.parametrize("name", ["digl", "fa", "largest_component", "reverse", "sdrf"])
def test_settings_make_the_same_transform_again(name):
    transform = find_transform(name)()
    assert resolve_transforms(transform.settings()) == (transform,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("sdfr", r"transform='sdfr' is not known\. Did you mean 'sdrf'\?"),
        ("sdrf:iteration=3", r"sdrf has no setting 'iteration'\. Did you mean 'iterations'\?"),
        ("sdrf:iterations=0", "iterations=0 is not valid for transform sdrf"),
        ("sdrf:iterations=2.0", r"iterations=2\.0 is not valid"),
        ("sdrf:iterations", "'iterations' is not key=value"),
        ("sdrf:curvature=ollivier", "curvature='ollivier' is not valid"),
        ({"iterations": 3}, "has no name"),
        ("reverse:k=2", "reverse takes no settings"),
        ("digl:k=3,threshold=0.1", "two rules"),
        ("reverse | digl:k=2, k=3", "'digl:k=2, k=3': 'k' is given more than once"),
        ("digl:name=sdrf", "'name' is given more than once"),
    ],
)
def test_wrong_names_and_settings_are_told(given, message):
    with pytest.raises(ValueError, match=message):
        resolve_transforms(given)


def test_what_is_no_transform_is_told():
    with pytest.raises(TypeError, match="transform is a int"):
        resolve_transforms(3)


def test_a_registered_transform_is_found_and_its_name_is_taken():
    class Nothing(Transform):
        """Changes nothing."""

        name = "nothing"

        def apply(self, graph):
            return graph

    register_transform(Nothing)
    try:
        assert resolve_transforms("nothing") == (Nothing(),)
        with pytest.raises(ValueError, match="registered already"):
            register_transform(Nothing)
    finally:
        unregister_transform("nothing")
    assert "nothing" not in available_transforms()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"edge_index": torch.tensor([[0], [5]])}, ValueError, "out of range for 3 nodes"),
        ({"num_nodes": 0}, ValueError, "num_nodes=0"),
        ({"edge_weight": torch.ones(2)}, ValueError, r"edge_weight has shape \[2\]"),
        ({"edge_weight": torch.tensor([torch.nan])}, ValueError, "not finite"),
        ({"edge_index": [[0], [1]]}, TypeError, "edge_index is a list"),
    ],
)
def test_a_wrong_graph_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        EdgeGraph(**{"edge_index": torch.tensor([[0], [1]]), "num_nodes": 3, **changes})


RING, PATH = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]]), torch.tensor([[0, 1, 2], [1, 2, 3]])
POINTER = torch.tensor([0, 5, 5, 9])  # a ring of five, an empty graph, a path of four


@pytest.mark.parametrize(
    "transform",
    [SDRF(iterations=2, undirected=True), DIGL(k=2), Undirected(), Reverse()],
    ids=lambda transform: transform.name,
)
def test_many_graphs_are_transformed_one_by_one(transform):
    # In another order than that of the graphs.
    both = EdgeGraph(torch.cat([PATH + 5, RING], dim=1), 9)
    result = apply_each(transform, both, POINTER)
    first, second = transform(EdgeGraph(RING, 5)), transform(EdgeGraph(PATH, 4))

    def entries(graph, shift=0):
        weight = torch.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight
        ends = (graph.edge_index + shift).t().tolist()
        return [(*edge, w) for edge, w in zip(ends, weight.tolist(), strict=True)]

    assert sorted(entries(result)) == sorted(entries(first) + entries(second, 5))
    for key, value in first.report.items():
        if "minimum" not in key:
            assert result.report[key] == value + second.report[key]


def test_many_graphs_that_would_lose_nodes_are_refused():
    with pytest.raises(ValueError, match="leaves nodes out, which is not done to each of many"):
        apply_each(LargestComponent(), EdgeGraph(RING, 9), POINTER)


@pytest.mark.parametrize("wrong", [Data(edge_index=torch.zeros(2, 1)), torch.zeros(2, 1)])
def test_a_transform_says_what_it_takes(wrong):
    message = r"graph is a (Data|Tensor); undirected takes an EdgeGraph.*transformed\(data, 'undir"
    with pytest.raises(TypeError, match=message):
        Undirected()(wrong)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DIGL(alpha=-1.0), "alpha=-1.0 is not valid for transform digl: .* digl takes ker"),
        (lambda: SDRF(iteration=3), "no setting 'iteration'. Did you mean 'iterations'"),
    ],
)
def test_wrong_settings_are_explained_however_they_are_given(make, message):
    with pytest.raises(ValueError, match=message) as found:
        make()
    assert type(found.value) is ValueError


def test_a_node_that_is_not_there_is_named_with_the_fix():
    with pytest.raises(ValueError, match=r"edge_index\[1, 0\] = 3 .* 2 nodes; .* give num_nodes"):
        balanced_forman_curvature(torch.tensor([[0], [3]]), 2)
