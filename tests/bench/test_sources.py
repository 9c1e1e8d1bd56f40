import pytest
import torch

from adgn.bench.sources import dataset_task, random_task
from adgn.graph import graph_operator


def test_a_random_graph_is_undirected_and_repeats():
    task, again = random_task(1000), random_task(1000)
    assert torch.equal(task.edge_index, again.edge_index)
    assert torch.equal(task.features, again.features)
    whole = graph_operator(task.edge_index, num_nodes=40, normalization="gcn", like=task.features)
    assert whole.is_symmetric
    assert task.num_classes <= 10
    assert not task.is_sparse


def test_a_random_graph_leaves_the_global_generator_alone():
    state = torch.random.get_rng_state()
    random_task(1000)
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("edges", [0, 24, 101])
def test_edges_that_make_no_graph(edges):
    with pytest.raises(ValueError, match=f"edges={edges} is not valid"):
        random_task(edges)


def test_a_node_data_set(data_root):
    task = dataset_task("texas", data_root)
    assert task.sizes() == {"nodes": 183, "edges": 325, "features": 1703}
    assert task.is_sparse
    assert torch.equal(task.dense_features, task.features.to_dense())
    assert task.train.numel() == 87
