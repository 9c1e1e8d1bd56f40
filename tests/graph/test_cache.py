import gc
import sys
import threading
import time
import weakref

import pytest
import torch
import torch_geometric.nn as pyg
from torch_geometric import EdgeIndex

from adgn.graph import cache_info, clear_cache, edge_list, graph_operator
from adgn.graph.cache import TensorCache, cached
from adgn.nn import AntiSymmetricConv, available_models, build_model
from tests.forks import needs_fork, status_of_child
from tests.graphs import edges


def test_the_same_tensors_hit_the_cache():
    edge_index, weight = edges((0, 1), (1, 2)), torch.ones(2)
    first = graph_operator(edge_index, weight, num_nodes=3, normalization="gcn")
    before = cache_info()
    assert graph_operator(edge_index, weight, num_nodes=3, normalization="gcn") is first
    assert cache_info()["misses"] == before["misses"]
    assert cache_info()["hits"] > before["hits"]


def test_an_edge_index_changed_in_place_is_another_graph():
    edge_index = edges((0, 1), (1, 2))
    before = graph_operator(edge_index, num_nodes=3).to_dense()
    edge_index[1, 1] = 0
    after = graph_operator(edge_index, num_nodes=3).to_dense()
    assert before.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert after.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_a_change_in_place_is_validated_again():
    edge_index = edges((0, 1))
    graph_operator(edge_index, num_nodes=2)
    edge_index[0, 0] = 7
    try:
        graph_operator(edge_index, num_nodes=2)
    except ValueError as error:
        assert "edge_index[0, 0] = 7" in str(error)
    else:
        raise AssertionError("the changed edge_index was not looked at")


def test_weights_changed_in_place_are_seen():
    edge_index, weight = edges((0, 1)), torch.ones(1)
    assert graph_operator(edge_index, weight, num_nodes=2).value.tolist() == [1]
    weight.mul_(3)
    assert graph_operator(edge_index, weight, num_nodes=2).value.tolist() == [3]


def test_sparse_matrices_changed_in_place_are_seen():
    adjacency = torch.eye(2).to_sparse_csr()
    assert graph_operator(adjacency, num_nodes=2).value.tolist() == [1, 1]
    adjacency.values().mul_(3)
    assert graph_operator(adjacency, num_nodes=2).value.tolist() == [3, 3]


def test_another_number_of_nodes_is_another_operator():
    edge_index = edges((0, 1))
    assert graph_operator(edge_index, num_nodes=2).shape == (2, 2)
    assert graph_operator(edge_index, num_nodes=5).shape == (5, 5)


def test_each_dtype_has_its_operator():
    edge_index = edges((0, 1))
    for dtype in (torch.float32, torch.float64):
        like = torch.empty(0, dtype=dtype)
        assert graph_operator(edge_index, num_nodes=2, like=like).value.dtype == dtype


def test_operators_go_with_their_tensors():
    clear_cache()
    edge_index = edges((0, 1))
    graph_operator(edge_index, num_nodes=2)
    assert cache_info()["size"] > 0
    del edge_index
    gc.collect()
    assert cache_info()["size"] == 0


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_an_edge_list_does_not_keep_its_graph_alive(dtype, view):
    clear_cache()
    edge_index = edges((0, 1), (1, 2)).to(dtype)
    edge_index = edge_index[:, :] if view else edge_index
    edge_list(edge_index, 3, torch.zeros(3, 1))
    assert cache_info()["size"] > 0
    alive = weakref.ref(edge_index)
    del edge_index
    gc.collect()
    assert alive() is None
    assert cache_info()["size"] == 0


@pytest.mark.parametrize("form", [torch.clone, EdgeIndex], ids=["tensor", "EdgeIndex"])
@pytest.mark.parametrize("name", ["gin", "gat", "PyG's GCNConv"])
def test_models_do_not_keep_graphs_alive(name, form):
    clear_cache()
    x, edge_index, edge_attr = torch.randn(3, 4), form(edges((0, 1), (1, 2))), torch.rand(2, 3)
    if name == "PyG's GCNConv":
        AntiSymmetricConv(4, phi=pyg.GCNConv(4, 4))(x, edge_index)
    else:
        build_model(name, 4, 4, 2, 2, edge_dim=3)(x, edge_index, edge_attr=edge_attr)
    assert cache_info()["size"] > 0
    alive = [weakref.ref(tensor) for tensor in (edge_index, edge_attr)]
    del edge_index, edge_attr
    gc.collect()
    assert [reference() for reference in alive] == [None, None]
    assert cache_info()["size"] == 0


@pytest.mark.parametrize("pairs", [((0, 1), (1, 2)), ((1, 2), (0, 1))], ids=["sorted", "not"])
@pytest.mark.parametrize("normalization", ["none", "gcn"])
def test_operators_go_with_their_weights(pairs, normalization):
    clear_cache()
    edge_index = edges(*pairs)
    graph_operator(edge_index, num_nodes=3, normalization=normalization)
    before, operators = cache_info()["size"], []
    for step in range(5):
        weight = torch.full((2,), 1.0 + step)
        operator = graph_operator(edge_index, weight, num_nodes=3, normalization=normalization)
        operators.append(weakref.ref(operator))
        del operator, weight
    gc.collect()
    assert not any(ref() is not None for ref in operators)
    assert cache_info()["size"] <= before + 1  # the edges' order, which serves all weights


def test_an_entry_whose_tensors_end_in_one_collection(monkeypatch):
    """The end of one can begin the collection that ends the other."""
    raised, cache, owner = [], TensorCache(), torch.ones(1)
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()  # what is there already would be gone through again and again
    try:
        for threshold in range(1, 120):
            gc.set_threshold(*before)
            first, second = torch.ones(1), torch.ones(1)
            cache.get((owner, first, second), "key", object)
            gc.collect()
            gc.set_threshold(threshold, 100, 100)
            cycle = [second]
            cycle.append(cycle)
            del second, cycle, first
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
        gc.collect()
        gc.freeze()  # as conftest.py leaves it for the tests that follow
    assert not raised and len(cache) == 0


def test_a_new_tensor_at_an_old_address_is_not_mistaken():
    results = set()
    for target in (1, 2) * 20:
        edge_index = edges((0, target))
        results.add((target, graph_operator(edge_index, num_nodes=3).to_dense()[target, 0].item()))
        del edge_index
    assert results == {(1, 1.0), (2, 1.0)}


def test_tensors_made_in_inference_mode_work():
    with torch.inference_mode():
        edge_index = edges((0, 1))
        assert graph_operator(edge_index, num_nodes=2).to_dense().tolist() == [[0, 0], [1, 0]]
        edge_index[1, 0] = 0
        assert graph_operator(edge_index, num_nodes=2).to_dense().tolist() == [[1, 0], [0, 0]]


def test_weights_with_a_gradient_build_anew_but_sort_nothing():
    edge_index = edges((0, 1), (1, 0))
    weight = torch.ones(2, requires_grad=True)
    first = graph_operator(edge_index, weight, num_nodes=2)
    second = graph_operator(edge_index, weight, num_nodes=2)
    assert first is not second
    assert first.pattern is second.pattern


@pytest.mark.parametrize("phi", ["sum", "gcn", "gat"])
def test_a_graph_first_used_inside_a_transform_serves_outside_of_it(phi):
    model = build_model("adgn", 3, 4, 2, 2, phi=phi)
    edge_index, x = edges((0, 1), (1, 2), (2, 0)), torch.randn(3, 3)
    inside = torch.func.jacrev(lambda x: model(x, edge_index))(x)
    outside = torch.autograd.functional.jacobian(lambda x: model(x, edge_index), x)
    torch.testing.assert_close(inside, outside)


def test_weights_inside_a_transform_are_not_remembered():
    edge_index, x = edges((0, 1)), torch.ones(2, 1)

    def total(weight):
        return (graph_operator(edge_index, weight, num_nodes=2) @ x).sum()

    assert torch.func.grad(total)(torch.ones(1)).tolist() == [1.0]
    assert torch.func.grad(total)(torch.ones(1)).tolist() == [1.0]
    assert total(torch.ones(1)) == 1


@pytest.mark.parametrize("name", sorted(available_models()))
def test_a_graph_first_used_in_inference_mode_can_be_trained_on(name):
    model = build_model(name, 3, 4, 2, 2).eval()
    edge_index, x = edges((0, 1), (1, 2), (2, 0)), torch.randn(3, 3)
    with torch.inference_mode():
        expected = model(x, edge_index).clone()
    output = model(x, edge_index)
    output.sum().backward()
    torch.testing.assert_close(output.detach(), expected)
    trained = model.readout if name == "gesn" else model.encoder
    assert all(parameter.grad is not None for parameter in trained.parameters())


def test_an_edge_index_written_to_through_its_tensor_is_another_graph():
    inner = edges((0, 1))
    edge_index = EdgeIndex(inner, sparse_size=(3, 3))
    assert graph_operator(edge_index, num_nodes=3).to_dense()[1, 0] == 1
    inner[1, 0] = 2
    assert graph_operator(edge_index, num_nodes=3).to_dense()[2, 0] == 1


def test_clearing_operators_that_hold_the_tensors_of_others(monkeypatch):
    unraised = []
    monkeypatch.setattr("sys.unraisablehook", unraised.append)
    cache, first = TensorCache(), torch.zeros(1)
    held = [torch.ones(1)]
    cache.get((held[0],), "key", lambda: "built from what the first entry holds")
    cache.get((first,), "key", held.copy)
    held.clear()
    cache.clear()
    assert len(cache) == 0
    assert unraised == []
    assert cache.get((first,), "key", lambda: "anew") == "anew"


@pytest.mark.parametrize("form", [torch.clone, EdgeIndex], ids=["tensor", "EdgeIndex"])
def test_a_tensor_with_the_data_of_another_is_another_graph(form):
    inner = edges((0, 1))
    edge_index = form(inner) if form is EdgeIndex else inner
    assert graph_operator(edge_index, num_nodes=3).to_dense()[1, 0] == 1
    inner.data = edges((0, 2))
    assert graph_operator(edge_index, num_nodes=3).to_dense()[2, 0] == 1
    inner.data = inner.data[:, :0]  # the same memory
    assert graph_operator(edge_index, num_nodes=3).num_entries == 0


def test_a_sparse_matrix_with_the_data_of_another_is_another_graph():
    adjacency = torch.eye(2).to_sparse_coo()
    assert graph_operator(adjacency, num_nodes=2).value.tolist() == [1, 1]
    adjacency.data = 3 * torch.eye(2).to_sparse_coo()
    assert graph_operator(adjacency, num_nodes=2).value.tolist() == [3, 3]


def test_data_at_the_address_of_earlier_data_is_not_mistaken():
    edge_index = edges((0, 1))
    for target in (1, 2) * 20:
        edge_index.data = torch.zeros(2, 1, dtype=torch.long)  # frees the memory of the last one
        edge_index.data = edges((0, target))
        assert graph_operator(edge_index, num_nodes=3).to_dense()[target, 0] == 1


class Awaited:
    """A key whose comparison, in the middle of a look-up, takes as long as the test wants."""

    def __init__(self):
        self.reached, self.done = threading.Event(), threading.Event()

    def __hash__(self):
        return 1

    def __eq__(self, other):
        self.reached.set()
        return self.done.wait(60)


@needs_fork
def test_a_process_forked_during_a_look_up_can_look_up():
    edge_index, key = edges((0, 1)), Awaited()
    cached((edge_index,), key, lambda: None)
    thread = threading.Thread(target=cached, args=((edge_index,), Awaited(), lambda: None))
    thread.start()
    try:
        assert key.reached.wait(60)
        assert status_of_child(lambda: graph_operator(edges((0, 1)), num_nodes=2)) == 0
        assert status_of_child(cache_info) == 0
        assert status_of_child(clear_cache) == 0
    finally:
        key.done.set()
        thread.join()


@pytest.fixture
def hasty_threads():
    """Threads take turns after every few operations."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_counting_entries_beside_a_thread_that_makes_and_loses_them(hasty_threads):
    stop = threading.Event()

    def work():
        while not stop.is_set():
            for edge_index in [torch.zeros(1) for _ in range(500)]:
                cached((edge_index,), "key", lambda: None)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        sizes, end = set(), time.monotonic() + 60
        while len(sizes) < 20 and time.monotonic() < end:  # until the thread was seen at work
            sizes |= {cache_info()["size"] for _ in range(5000)}
        assert len(sizes) >= 20
    finally:
        stop.set()
        thread.join()
