"""Which networks ranks may share, and which part of a batch each has."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adgn.distributed.errors import RankError
from adgn.graph import PartitionedGraph, cut_part
from adgn.nn import available_models, build_model
from adgn.training import FullGraph, TaskData
from adgn.training.batches import balanced_part
from adgn.training.shares import PARTITIONED_MODELS, check_network
from tests.helpers.rank_threads import on_ranks

EDGES = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 0, 2, 2, 5, 7], [1, 2, 3, 4, 5, 6, 0, 4, 6, 2, 1, 0]])
OWNER = torch.tensor([0, 0, 0, 1, 1, 1, 0, 1, 1])
X = torch.randn(9, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))


def gradients(network):
    grads = (parameter.grad for parameter in network.parameters())
    return torch.cat([grad.flatten() for grad in grads if grad is not None])


@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, {}) for name in sorted(PARTITIONED_MODELS)), ("adgn", {"first_hops": 2})],
)
def test_a_spread_graph_gives_the_outputs_and_gradients_of_the_whole(name, options):
    torch.manual_seed(0)
    network = build_model(name, 3, 4, 2, 3, **options).double()
    whole = network(X, EDGES)
    whole.pow(2).sum().backward()
    expected = gradients(network)

    def work(rank, exchange):
        own = copy.deepcopy(network)
        own.zero_grad()
        part = PartitionedGraph(cut_part(EDGES, None, OWNER, rank, 2), exchange)
        output = own(X[part.nodes], part)
        output.pow(2).sum().backward()
        return part.nodes, output.detach(), gradients(own)

    found = on_ranks(2, work)
    for nodes, output, _ in found:
        torch.testing.assert_close(output, whole.detach()[nodes], rtol=1e-10, atol=1e-12)
    total = found[0][2] + found[1][2]
    torch.testing.assert_close(total, expected, rtol=1e-10, atol=1e-12)


def task(kind=FullGraph):
    source = FullGraph(X.float(), EDGES, torch.zeros(9, dtype=torch.long), torch.arange(9))
    return TaskData(3, 2, "node", source, {"train": source}, {})


@pytest.mark.parametrize("name", sorted(set(available_models()) - PARTITIONED_MODELS))
def test_others_are_refused(name):
    with pytest.raises(RankError, match="cannot be trained on a graph that is spread"):
        check_network(build_model("mlp", 3, 4, 2, 3), name, task())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"integrator": "dopri5"}, "integrator='dopri5'"),
        ({"blocks": 2, "block_norm": "batch"}, "a batch normalisation"),
        ({"blocks": 2, "block_norm": "pair"}, "a PairNorm"),
        ({"fully_adjacent": True}, "fully_adjacent=True"),
    ],
)
def test_what_joins_rows_is_refused(options, message):
    network = build_model("adgn", 3, 4, 2, 3, **options)
    with pytest.raises(RankError, match=message):
        check_network(network, "adgn", task())


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 5))
def test_parts_of_a_batch_are_all_of_it_and_even(costs, size):
    cost = torch.tensor(costs)
    chosen = torch.randperm(len(costs), generator=torch.Generator().manual_seed(0))
    parts = [balanced_part(chosen, cost, rank, size) for rank in range(size)]
    assert sorted(torch.cat(parts).tolist()) == list(range(len(costs)))
    loads = [int(cost[part].sum()) for part in parts]
    assert max(loads) - min(loads) <= max(costs)
