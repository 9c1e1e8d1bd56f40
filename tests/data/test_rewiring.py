"""Transformed data: what follows the nodes, files, and the published components."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Batch, Data

from adgn.data import load, transformed
from adgn.data.features import csr_from_scipy, csr_to_scipy
from adgn.data.rewiring import apply_transforms
from adgn.transforms import DIGL, SDRF, EdgeGraph, LargestComponent, Transform, resolve_transforms

EDGES = torch.tensor([[1, 2, 3, 4, 2], [2, 3, 4, 1, 4]])  # node 0 is alone


def data():
    return Data(
        x=torch.eye(5),
        edge_index=EDGES,
        y=torch.arange(5),
        train_mask=torch.tensor([[True, False]] * 5),
        name="five",
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_what_belongs_to_nodes_follows_them(tmp_path, sparse):
    given = data()
    if sparse:
        given.x = csr_from_scipy(csr_to_scipy(given.x.to_sparse_csr()))
    part = transformed(given, "largest_component", root=tmp_path)
    assert part.num_nodes == 4
    assert part.node_id.tolist() == part.y.tolist() == [1, 2, 3, 4]
    assert part.edge_index.tolist() == (EDGES - 1).tolist()
    x = part.x.to_dense() if sparse else part.x
    assert torch.equal(x, torch.eye(5)[1:])
    assert part.train_mask.shape == (4, 2)
    assert part.name == "five"
    assert given.num_nodes == 5  # the data given stay as they are


def test_transforms_compose_in_order(tmp_path):
    one = transformed(data(), ["largest_component", "reverse", "digl:k=2"], root=tmp_path)
    step = transformed(data(), "largest_component", root=tmp_path)
    step = transformed(transformed(step, "reverse", root=tmp_path), DIGL(k=2), root=tmp_path)
    assert torch.equal(one.edge_index, step.edge_index)
    assert torch.equal(one.edge_weight, step.edge_weight)
    assert torch.equal(one.node_id, step.node_id)
    assert one.normalized
    assert one.transform_notes == [
        "weak component: 1 nodes left out",
        f"{one.num_edges} weighted edges by diffusion",
    ]


def test_node_ids_of_before_are_kept(tmp_path):
    given = data()
    given.node_id = torch.arange(10, 15)
    assert transformed(given, "largest_component", root=tmp_path).node_id.tolist() == [
        *range(11, 15)
    ]


@pytest.mark.parametrize(
    "transform",
    [DIGL(k=2), SDRF(iterations=3, seed=1), LargestComponent(), DIGL(k=2, undirected=True)],
    ids=str,
)
def test_a_file_gives_the_same_graph(tmp_path, monkeypatch, transform):
    graph = EdgeGraph(EDGES, 5)
    first, _ = apply_transforms(graph, (transform,), root=tmp_path)
    (file,) = (tmp_path / "adgn" / "transforms").glob("*.safetensors")
    assert file.name.startswith(f"{transform.name}-")

    def never(self, graph):
        raise AssertionError("it is known already")

    monkeypatch.setattr(type(transform), "apply", never)
    again, _ = apply_transforms(graph, (transform,), root=tmp_path)
    assert torch.equal(first.edge_index, again.edge_index)
    assert first.num_nodes == again.num_nodes
    assert first.report == again.report
    assert first.normalized == again.normalized
    for name in ("edge_weight", "kept"):
        one, other = getattr(first, name), getattr(again, name)
        assert (one is None and other is None) or torch.equal(one, other)


def test_other_settings_and_other_graphs_are_other_files(tmp_path):
    def files():
        return len(list((tmp_path / "adgn" / "transforms").glob("*.safetensors")))

    weight = torch.rand(5)
    for count, (graph, transform) in enumerate(
        [
            (EdgeGraph(EDGES, 5), DIGL(k=2)),
            (EdgeGraph(EDGES, 5), DIGL(k=3)),
            (EdgeGraph(EDGES, 6), DIGL(k=2)),
            (EdgeGraph(EDGES.flip(0), 5), DIGL(k=2)),
            (EdgeGraph(EDGES, 5, weight), DIGL(k=2)),
        ],
        start=1,
    ):
        apply_transforms(graph, (transform,), root=tmp_path)
        assert files() == count
    apply_transforms(EdgeGraph(EDGES.clone(), 5), (DIGL(k=2),), root=tmp_path)
    assert files() == 5


def test_a_damaged_file_is_made_again(tmp_path):
    graph = EdgeGraph(EDGES, 5)
    first, _ = apply_transforms(graph, (DIGL(k=2),), root=tmp_path)
    (file,) = (tmp_path / "adgn" / "transforms").glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.warns(UserWarning, match="making it again"):
        again, _ = apply_transforms(graph, (DIGL(k=2),), root=tmp_path)
    assert torch.equal(first.edge_index, again.edge_index)


def test_a_weighted_graph_stays_weighted(tmp_path):
    given = data()
    given.edge_weight = torch.arange(1.0, 6.0)
    turned = transformed(given, "reverse", root=tmp_path)
    assert torch.equal(turned.edge_weight, given.edge_weight)
    with pytest.raises(ValueError, match="sdrf was given a graph with edge weights"):
        transformed(given, "sdrf", root=tmp_path)


def test_edge_features_and_batches_are_refused(tmp_path):
    given = data()
    given.edge_attr = torch.ones(5, 2)
    with pytest.raises(ValueError, match=r"data\.edge_attr has a row for each edge"):
        transformed(given, "reverse", root=tmp_path)
    with pytest.raises(ValueError, match="a batch of many graphs"):
        transformed(Batch.from_data_list([data(), data()]), "reverse", root=tmp_path)


@pytest.mark.parametrize(
    ("name", "nodes", "edges"),
    [
        ("chameleon", 832, 12355),
        ("cornell", 140, 219),
        ("texas", 135, 251),
        ("wisconsin", 184, 362),
        ("actor", 4388, 21907),
    ],
)
def test_components_of_the_released_code(name, nodes, edges, data_root):
    graph = load(name, data_root)
    whole = EdgeGraph(graph.edge_index, graph.num_nodes)
    part = LargestComponent(kind="released")(whole)
    assert (part.num_nodes, part.num_edges) == (nodes, edges)
    strong = {"chameleon": 794, "cornell": 5, "texas": 7, "wisconsin": 14, "actor": 3807}
    assert LargestComponent(kind="strong")(whole).num_nodes == strong[name]
    assert LargestComponent()(whole).num_nodes == graph.num_nodes


def test_resolved_transforms_are_those_of_the_settings(tmp_path):
    settings = [transform.settings() for transform in resolve_transforms("reverse|digl:k=2")]
    one, other = (
        transformed(data(), given, root=tmp_path) for given in (settings, "reverse|digl:k=2")
    )
    assert torch.equal(one.edge_index, other.edge_index)


def test_a_transform_that_is_there_twice_tells_of_itself_each_time(tmp_path):
    ends = torch.tensor([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])  # two triangles
    given = Data(x=torch.eye(6), edge_index=ends)
    notes = transformed(given, "sdrf:iterations=2 | sdrf:iterations=1", root=tmp_path)
    first, second = notes.transform_notes
    assert first != second
    after, before = first.rpartition("→ ")[2], second.partition("curvature ")[2].split()[0]
    assert after == before  # the second begins where the first ended
    alone = Data(x=torch.eye(5), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    parts = "largest_component:kind=strong | reverse | largest_component"
    assert transformed(alone, parts, root=tmp_path).transform_notes == [
        "strong component: 2 nodes left out",
        "weak component: 0 nodes left out",
    ]


def test_what_a_slow_transform_says_of_the_last_layer_is_kept(tmp_path):
    class Slow(Transform):
        """Makes the last layer fully adjacent, slowly."""

        name = "slow-fa"
        is_slow = True

        def apply(self, graph):
            return replace(graph, fully_adjacent=True)

    for _ in range(2):  # made, and read
        found, _ = apply_transforms(EdgeGraph(EDGES, 5), (Slow(),), root=tmp_path)
        assert found.fully_adjacent
    plain, _ = apply_transforms(EdgeGraph(EDGES, 5), (DIGL(k=2),), root=tmp_path)
    assert not plain.fully_adjacent


@pytest.mark.parametrize("wrong", [EDGES, None, [1, 2]])
def test_what_is_no_data_is_refused(wrong):
    with pytest.raises(TypeError, match=r"data is a \w+; give PyG data, Data\(x=x"):
        transformed(wrong, "undirected")
