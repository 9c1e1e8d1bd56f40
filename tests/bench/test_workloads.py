from dataclasses import replace

import pytest
import torch

from adgn.bench.sources import ManyGraphs, NodeTask, random_task
from adgn.bench.workloads import (
    COMPILED,
    NETWORKS,
    WAYS,
    Workload,
    build_step,
    load_source,
    served_ways,
)
from adgn.data import GraphPropertyDataset
from adgn.training.batches import PackedBatches

# The ways that are the same network, but for those that compile.
ALIKE = [way for way in WAYS if way not in (*NETWORKS, *COMPILED)]
# torch's compiler looks at the gradients of all tensors that it meets.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")


@pytest.fixture(scope="module")
def many_graphs(tmp_path_factory):
    settings = {"min_nodes": 6, "train": (2, 8), "val": (1, 1), "test": (1, 1)}
    graphs = GraphPropertyDataset(tmp_path_factory.mktemp("data"), **settings).packed
    return ManyGraphs(PackedBatches(graphs, 6, seed=0), torch.arange(16).split(6))


def sparse_task():
    task = random_task(1000)
    features = (task.features * (task.features > 0.9)).to_sparse_csr()
    return NodeTask(features, task.edge_index, task.classes, task.train)


@pytest.mark.parametrize("phi", ["gcn", "sum"])
@pytest.mark.parametrize("source", [random_task(1000), sparse_task()], ids=["dense", "sparse"])
def test_all_ways_train_alike_on_one_graph(source, phi):
    workload = Workload("random", 6, 8, phi, 1000)
    ways = served_ways(source, ALIKE)
    assert ("pyg-csr-sparse" in ways) == source.is_sparse
    check_agreement(workload, source, ways)


def test_all_ways_train_alike_on_many_graphs(many_graphs):
    ways = served_ways(many_graphs, ALIKE)
    check_agreement(Workload("property", 5, 8, "sum", 16), many_graphs, ways)


@pytest.mark.parametrize("kind", ["one", "many"])
def test_all_ways_predict_alike_and_change_nothing(kind, many_graphs):
    source = sparse_task() if kind == "one" else many_graphs
    trained = Workload("random", 4, 8, "gcn" if kind == "one" else "sum", 1000)
    predicted = replace(trained, predict=True)
    start = build_step(trained, source, "adgn")()
    for way in served_ways(source, ALIKE):
        step = build_step(predicted, source, way)
        losses = [step(), step()]
        assert losses[0] == losses[1], way  # no weight has moved
        if kind == "one":  # on many graphs the weights move within an epoch
            assert losses[0] == pytest.approx(start, rel=1e-4), way


@pytest.mark.long
@pytest.mark.parametrize("kind", ["one", "many"])
def test_compiled_ways_train_alike(kind, many_graphs, monkeypatch):
    # Traces as the usual one does and generates no code. Measurements check the losses of that one.
    monkeypatch.setattr("adgn.bench.workloads.COMPILER", "aot_eager")
    torch.compiler.reset()
    source = random_task(1000) if kind == "one" else many_graphs
    workload = Workload("random", 1, 4, "gcn" if kind == "one" else "sum", 1000)
    check_agreement(workload, source, ["adgn", *COMPILED])


@pytest.mark.parametrize("way", NETWORKS)
def test_other_networks_learn_by_their_own_equations(many_graphs, way):
    workload = Workload("property", 5, 8, "sum", 16)
    losses = {name: build_step(workload, many_graphs, name)() for name in ("adgn", way)}
    assert losses[way] != pytest.approx(losses["adgn"], rel=5e-6)  # rounding: 1e-7
    step = build_step(workload, many_graphs, way)
    assert [step() for _ in range(4)][-1] < losses[way]


def check_agreement(workload, source, ways):
    """Losses of later steps agree only if gradients do."""
    losses = {}
    for way in ways:
        step = build_step(workload, source, way)
        losses[way] = [step() for _ in range(4)]
    assert losses["adgn"][3] < losses["adgn"][0]
    for way in ways:
        assert losses[way] == pytest.approx(losses["adgn"], rel=1e-5), way


def test_steps_leave_the_global_generator_alone():
    state = torch.random.get_rng_state()
    build_step(Workload("random", 2, 4, "gcn", 1000), random_task(1000), "pyg")()
    assert torch.equal(torch.random.get_rng_state(), state)


def test_an_unknown_way():
    with pytest.raises(ValueError, match=r"way='pyq' is not known. Did you mean 'pyg'"):
        build_step(Workload("random", 2, 4, "gcn", 1000), random_task(1000), "pyq")


def test_sources_by_name():
    assert load_source(Workload("random", 2, 4, "gcn", 1000), None).sizes()["edges"] == 1000
