"""Plans: what is worked out must follow the sizes."""

import itertools

import pytest

from adgn.distributed.plan import Speeds, Workload, machines_needed, measure_exchange, need

SPEEDS = Speeds(edges=1e9, dense=5e10, memory=1e10, link=1e9, latency=1e-4, threads=2)
GRAPH = Workload(nodes=1e7, edges=1e8, layers=64, hidden=64)


def test_more_machines_need_less_each():
    needs = [need(GRAPH, SPEEDS, machines=count, memory=64e9) for count in (1, 2, 4, 8)]
    for fewer, more in itertools.pairwise(needs):
        assert more.memory < fewer.memory and more.compute < fewer.compute
    assert needs[0].exchange == 0 and needs[0].mode == "one process"
    assert all(one.exchange > 0 for one in needs[1:])
    # The states that are kept: one number per entry and layer.
    assert needs[0].states > 4 * GRAPH.nodes * 64 * 64


def test_reading_counts():
    """A rank with a shard reads its share; without, the whole edge list."""
    one, four = (need(GRAPH, SPEEDS, machines=n, memory=64e9, halo_share=0.2) for n in (1, 4))
    assert four.reading < one.reading / 3 and one.reading == one.reading_whole
    assert four.reading_whole > four.reading + 16 * GRAPH.edges
    shallow = Workload(nodes=1e7, edges=1e9, layers=1, hidden=1, features=1)
    found = need(shallow, SPEEDS, memory=1e11)
    assert found.memory < found.reading and not found.fits


def test_an_exchange_is_measured():
    speed, latency = measure_exchange(numbers=2**16, repeats=5)
    assert 1e6 < speed < 1e12 and 1e-7 < latency < 1


def test_checkpoints_trade_time_for_memory():
    full, less = (need(GRAPH, SPEEDS, memory=1.0, checkpoint=c) for c in (False, True))
    assert less.states < full.states and less.compute > full.compute and not full.fits


def test_batches_exchange_gradients_alone():
    batch = Workload(nodes=1e6, edges=1e7, layers=20, hidden=30, graphs=512)
    found = need(batch, SPEEDS, machines=4, memory=1e9)
    assert found.mode == "batches over ranks" and found.halo == 0
    # Each rank reads the whole data set; a batch does not tell how large that is.
    assert found.reading == found.reading_whole == 0
    tight = need(batch, SPEEDS, machines=4, memory=found.memory)
    assert tight.fits and not need(batch, SPEEDS, machines=4, memory=found.memory - 1).fits


def test_the_smallest_number_of_machines():
    least = machines_needed(GRAPH, SPEEDS, memory=8e9, halo_share=0.3)
    assert least.fits and least.machines > 1
    fewer = {"machines": least.machines - 1, "memory": 8e9, "halo_share": 0.3}
    assert not need(GRAPH, SPEEDS, checkpoint=True, **fewer).fits
    assert machines_needed(GRAPH, SPEEDS, memory=1e3, halo_share=0.3) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [({"nodes": 0}, "nodes=0"), ({"edges": -1}, "edges=-1"), ({"hidden": 0}, "hidden=0")],
)
def test_sizes_that_cannot_be(change, message):
    with pytest.raises(ValueError, match=message):
        Workload(**{"nodes": 1, "edges": 1, "layers": 1, "hidden": 1, **change})
