"""Ranks train the same network as one process: batches of graphs, and one partitioned graph."""

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from adgn.distributed.partition import partition_quality
from adgn.graph.needed import LEAST_NODES
from adgn.training.shards import write_shards
from tests.helpers import rank_jobs

pytestmark = pytest.mark.filterwarnings("ignore::adgn.training.LearnedNothingWarning")
STEPS = 50
CLOSE = {"float32": 1e-6, "float64": 1e-12}
# Each example is trained once by one process and once by ranks; `--hypothesis-seed` draws others.
SOME = settings(
    max_examples=6,
    deadline=None,
    phases=[
        Phase.explicit,
        Phase.reuse,
        Phase.generate,
    ],  # a failure ends the ranks: no smaller one
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
KINDS = st.fixed_dictionaries(
    {
        "phi": st.sampled_from(["sum", "gcn"]),
        "weight_sharing": st.booleans(),
        "dtype": st.sampled_from(["float64", "float32"]),
        "memory": st.sampled_from(["full", "checkpoint"]),
        "act": st.sampled_from(["tanh", "relu"]),
    }
)
SIZES = pytest.mark.parametrize("size", [2, 4])


@st.composite
def graphs(draw, most=7):
    """Nodes and edges `[[source, target], …]`; isolated nodes, loops and repeats among them."""
    nodes = draw(st.integers(1, most))
    end = st.integers(0, nodes - 1)
    return nodes, draw(st.lists(st.tuples(end, end).map(list), max_size=2 * nodes))


def difference(one, other):
    assert one.keys() == other.keys()
    pairs = ((torch.tensor(one[name]), torch.tensor(other[name])) for name in one)
    return max(float((a - b).abs().max()) for a, b in pairs if a.numel())


def check_equal(alone, ranks, dtype):
    for found in ranks:
        assert found["weights"] == ranks[0]["weights"]  # bit for bit the same on all ranks
        assert found["losses"] == ranks[0]["losses"]
        assert found["score"] == ranks[0]["score"]
    assert difference(alone["weights"], ranks[0]["weights"]) <= CLOSE[dtype]
    assert ranks[0]["losses"] == pytest.approx(alone["losses"], rel=1e-4)


@pytest.mark.long
@SIZES
@given(st.data(), KINDS)
@SOME
def test_shares_of_batches(groups, size, data, kind):
    drawn = data.draw(st.lists(graphs(), min_size=size, max_size=9))
    batch_size = data.draw(st.integers(1, len(drawn)))
    level = data.draw(st.sampled_from(["node", "graph"]))
    passes = max(1, STEPS * batch_size // len(drawn))
    job = {"graphs": drawn, "batch_size": batch_size, "steps": passes, "level": level, **kind}
    alone = rank_jobs.batched(None, **job)
    check_equal(alone, groups(size).call("batched", **job), kind["dtype"])


GRAPH_KINDS = st.fixed_dictionaries(
    {
        "direction": st.sampled_from(["in", "out", "both", "undirected"]),
        "weighted": st.booleans(),
        "unknown": st.booleans(),
        "channels": st.sampled_from([4, 16]),  # with padding, and received in place
    }
)


@pytest.mark.long
@pytest.mark.parametrize("files", [False, True], ids=["whole", "shards"])
@SIZES
@given(st.data(), KINDS, GRAPH_KINDS)
@SOME
def test_parts_of_a_graph(groups, tmp_path, size, files, data, kind, graph):
    nodes, edges = data.draw(graphs(most=12))
    # Any partition: ranks without nodes, without scored nodes and without a halo among them.
    owner = data.draw(st.lists(st.integers(0, size - 1), min_size=nodes, max_size=nodes))
    job = {"nodes": nodes, "edges": edges, "owner": owner, "steps": STEPS, **kind, **graph}
    alone = rank_jobs.partitioned(None, **job)
    if files:
        given = (nodes, edges, kind["dtype"], graph["weighted"], graph["unknown"])
        whole = rank_jobs.task_data(rank_jobs.whole_graph(*given))
        write_shards(tmp_path, whole, torch.tensor(owner), size, rank_jobs.TASK)
        job["shards"] = str(tmp_path)
    check_equal(alone, groups(size).call("partitioned", **job), kind["dtype"])


RING = [[i, (i + k) % 12] for i in range(12) for k in (1, 2)]


def test_bytes_that_come_in_are_those_of_the_partition(groups):
    owner = [0] * 5 + [1] * 7
    edges = torch.tensor(RING).t()
    quality = partition_quality(edges, torch.tensor(owner), 2)
    assert quality.cut == 6 and quality.halo == (2, 2)
    job = {"nodes": 12, "edges": RING, "owner": owner, "dtype": "float32", "phi": "sum"}
    found = [
        groups(2).call("partitioned", steps=steps, **job) for steps in (10, 20)
    ]  # a difference: evaluations and the last look at the train rows are the same in both
    for rank in (0, 1):
        more = found[1][rank]["received"] - found[0][rank]["received"]
        sent = 2  # rows of this rank that the other one needs, whose gradients come back
        there, back = quality.halo[rank] * 4 * 4, sent * 4 * 4
        layers, evaluations = 3, 1
        assert more == layers * (10 * (there + back) + evaluations * there)


def test_class_weights_with_unknown_labels(groups):
    """Of unknown rows neither the loss nor the weight counts, on whichever rank they are."""
    owner = [0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 1]
    job = {"nodes": 12, "edges": RING, "owner": owner, "dtype": "float64", "phi": "sum"}
    job |= {"steps": STEPS, "unknown": True}
    alone = rank_jobs.partitioned(None, **job)
    check_equal(alone, groups(2).call("partitioned", **job), "float64")


def test_a_graph_of_which_one_process_would_compute_a_part(groups):
    """One process leaves out what no scored node hears; ranks compute all their nodes."""
    nodes = LEAST_NODES + 100
    edges = [[i, i + 1] for i in range(nodes - 1)]
    owner = [i % 2 for i in range(nodes)]
    kind = {"dtype": "float64", "phi": "gcn", "steps": 3}
    job = {"nodes": nodes, "edges": edges, "owner": owner, **kind}
    alone = rank_jobs.partitioned(None, **job)
    check_equal(alone, groups(2).call("partitioned", **job), "float64")
