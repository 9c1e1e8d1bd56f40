import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.utils import to_networkx

from adgn._util.environment import NotEnoughMemoryError
from adgn.data import TOPOLOGIES, GraphTransfer
from adgn.data.transfer import transfer_size


@given(st.sampled_from(TOPOLOGIES), st.integers(3, 25))
def test_source_and_target_are_the_distance_apart(topology, distance):
    graph = GraphTransfer(topology, distance, num_graphs=2)[1]
    network = to_networkx(graph, to_undirected=True)
    source, target = int(graph.x[:, 0].abs().argmax()), int(graph.mask.nonzero())
    assert nx.shortest_path_length(network, source, target) == distance
    assert graph.num_nodes == (distance + 1 if topology == "line" else 2 * distance)
    assert graph.is_undirected()
    assert graph.x.shape == (graph.num_nodes, 1)
    assert graph.x.count_nonzero() == 1
    assert torch.equal(graph.y, graph.x[source, 0].view(1, 1))


@pytest.mark.parametrize("distance", [3, 4, 10])
def test_topologies(distance):
    def network(topology):
        return to_networkx(GraphTransfer(topology, distance)[0], to_undirected=True)

    assert nx.is_isomorphic(network("line"), nx.path_graph(distance + 1))
    assert nx.is_isomorphic(network("ring"), nx.cycle_graph(2 * distance))
    crossed = network("crossed_ring")
    assert crossed.number_of_edges() == 2 * distance + 2 * (distance - 2)
    # At every step inside, both sides are joined to both sides of the next step.
    paths = list(nx.all_shortest_paths(crossed, 0, distance))
    assert len(paths) == 2 ** (distance - 1)
    assert len(list(nx.all_shortest_paths(network("ring"), 0, distance))) == 2


def test_splits_and_seeds_differ_and_repeat():
    first = GraphTransfer("line", 3).packed.y
    assert torch.equal(first, GraphTransfer("line", 3).packed.y)
    assert len(first) == 1000
    val, test = GraphTransfer("line", 3, "val").packed.y, GraphTransfer("line", 3, "test").packed.y
    assert not torch.equal(val, test)
    assert not torch.equal(val, first[:100])
    assert not torch.equal(first, GraphTransfer("line", 3, seed=1).packed.y)


def test_numbers_are_uniform_in_minus_one_to_one():
    numbers = GraphTransfer("ring", 2, num_graphs=20_000).packed.y
    assert numbers.min() >= -1
    assert numbers.max() < 1
    assert numbers.square().mean().item() == pytest.approx(1 / 3, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lien", 5), "topology='lien'.*'line'"),
        (("line", 0), "distance=0 is too small.*at least 1: .*line"),
        (("ring", 1), "distance=1 .*at least 2"),
        (("crossed_ring", 2), "distance=2 .*at least 3"),
        (("line", 2.0), "distance=2.0 is not an integer"),
        (("line", 5, "dev"), "split='dev'"),
    ],
)
def test_impossible_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        GraphTransfer(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_graphs": 0}, "num_graphs=0 is too small.*at least 1"),
        ({"num_graphs": 2.5}, "num_graphs=2.5 is not an integer"),
        ({"num_graphs": True}, "num_graphs=True is not an integer"),
        ({"seed": -1}, "seed=-1 is too small.*at least 0"),
        ({"seed": 0.5}, "seed=0.5 is not an integer"),
    ],
)
def test_wrong_counts_and_seeds_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        GraphTransfer("line", 5, **options)


@pytest.mark.parametrize("size", [{"distance": 10**10}, {"distance": 3, "num_graphs": 10**12}])
def test_graphs_that_cannot_fit_are_refused_before_they_are_made(size):
    with pytest.raises(NotEnoughMemoryError, match=r"distance=.* GB are free"):
        GraphTransfer("line", **size)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_size_is_known_before(topology):
    nodes, edges, size = transfer_size(topology, 7, 5)
    packed = GraphTransfer(topology, 7, num_graphs=5).packed
    assert (nodes * 5, edges) == (packed.x.size(0), packed.edge_index.size(1))
    assert size >= 4 * packed.x.numel()
