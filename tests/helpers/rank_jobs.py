"""The work of a rank in tests: a process that joins a group once and then trains many examples."""

import time
from datetime import timedelta
from pathlib import Path

import torch
from torch._C._distributed_c10d import TCPStore

from adgn.data.packed import PackedGraphs
from adgn.distributed.errors import RankError
from adgn.distributed.exchange import RowExchange
from adgn.distributed.ranks import ALONE, ProcessRanks
from adgn.graph import PartitionedGraph
from adgn.nn import build_model
from adgn.training import FullGraph, PackedBatches, TaskData, Trainer
from adgn.training.config import TaskConfig
from adgn.training.shards import read_shard
from adgn.training.shares import WholeGraph, graph_share

_ranks = None


def handle(message, stop):
    """Joins the others at the first message; what a job returns, as lists."""
    global _ranks
    torch.set_num_threads(1)
    job = message.pop("job")
    if job == "join":
        store = TCPStore(
            "127.0.0.1", message["port"], is_master=False, timeout=timedelta(seconds=60)
        )
        _ranks = ProcessRanks(store, message["rank"], message["size"], timeout=20)
        return None
    return {"batched": batched, "partitioned": partitioned}[job](_ranks, **message)


def prepare(message, stop):
    """Rank 1 prepares for some seconds and reports progress or not; rank 0 waits for it."""
    store = TCPStore("127.0.0.1", message["port"], is_master=False, timeout=timedelta(seconds=20))
    started, error = time.monotonic(), None
    limits = {"timeout": 20, "prepare_timeout": message["prepare_timeout"]}
    try:
        with ProcessRanks(store, message["rank"], 2, **limits) as ranks:
            started = time.monotonic()
            if message["rank"] == 1:
                ranks.report_activity("reading the data")
                for word in range(message["words"] or 1):
                    time.sleep(message["seconds"] / (message["words"] or 1))
                    if message["words"]:
                        ranks.report_activity(f"reading the data ({word})")
            ranks.agree({"data": "a"})
    except RankError as found:
        error = str(found)
    return {"error": error, "seconds": time.monotonic() - started}


def packed(graphs, y_level, dtype):
    """Graphs `[nodes, edges]` with features and targets that depend on nothing else."""
    generator = torch.Generator().manual_seed(0)
    nodes = torch.tensor([count for count, _ in graphs])
    edges = torch.tensor([len(ends) for _, ends in graphs])
    total = int(nodes.sum())
    rows = total if y_level == "node" else len(graphs)
    return PackedGraphs(
        x=torch.randn(total, 3, generator=generator, dtype=dtype),
        edge_index=torch.tensor([end for _, ends in graphs for end in ends]).long().view(-1, 2).t(),
        node_ptr=torch.cat([torch.zeros(1).long(), nodes.cumsum(0)]),
        edge_start=edges.cumsum(0) - edges,
        edge_count=edges,
        y=torch.randn(rows, 1, generator=generator, dtype=dtype),
        y_level=y_level,
    )


def network(model, dtype, channels, outputs, level, options):
    torch.manual_seed(1)
    made = build_model(model, 3, channels, outputs, 3, level=level, **options)
    return made.to(dtype)


def fitted(ranks, made, train, objective, steps, seed=0):
    """The weights after some steps, and the scores on the way."""
    # Plain descent: Adam divides by the size of gradients, those that are nothing but rounding too.
    optimizer = torch.optim.SGD(made.parameters(), lr=0.01)
    trainer = Trainer(
        made, train, train, objective=objective, optimizer=optimizer, max_epochs=steps,
        evaluate_every=10, ranks=ranks or ALONE, seed=seed,
    )  # fmt: skip
    trainer.fit()
    weights = {name: weight.flatten().tolist() for name, weight in made.state_dict().items()}
    losses = [line["train_loss"] for line in trainer.history]
    return {"weights": weights, "losses": losses, "score": trainer.stopping.best}


def batched(ranks, graphs, dtype, batch_size, steps, level="node", model="adgn", **options):
    """Trains on shares of batches."""
    dtype = getattr(torch, dtype)
    source = PackedBatches(packed(graphs, level, dtype), batch_size, seed=3)
    if ranks is not None:
        source = source.part_of(ranks.rank, ranks.size)
    made = network(model, dtype, 4, 1, level, options)
    return fitted(ranks, made, source, "regression", steps)


def whole_graph(nodes, edges, dtype, weighted=False, unknown=False):
    """A graph whose nodes count differently in the loss; `unknown`: the labels of some are −1."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(nodes, 3, generator=generator, dtype=getattr(torch, dtype))
    y = torch.randint(0, 3, (nodes,), generator=generator)
    scored = torch.arange(nodes) % 3 != 1
    ends = torch.tensor(edges).long().view(-1, 2).t().contiguous()
    weight = torch.rand(nodes, generator=generator, dtype=x.dtype) + 0.5
    if unknown:
        y[torch.arange(nodes) % 4 == 2] = -1
    edge_weight = None
    if weighted:
        edge_weight = torch.rand(ends.size(1), generator=generator, dtype=x.dtype) + 0.5
    return FullGraph(x, ends, y, scored, weight=weight, edge_weight=edge_weight)


def task_data(source):
    return TaskData(3, 3, "node", source, {"train": source}, {})


TASK = TaskConfig(name="a-graph")


def partitioned(
    ranks,
    nodes,
    edges,
    owner,
    dtype,
    steps,
    model="adgn",
    shards=None,
    weighted=False,
    unknown=False,
    channels=4,
    **options,
):
    """Trains on a part of a graph, or a shard of it; also what came in for the exchanges."""
    exchange = None if ranks is None else RowExchange(ranks)
    if ranks is not None and shards is not None:
        source = read_shard(Path(shards), ranks, TASK, exchange=exchange).train
    else:
        source = whole_graph(nodes, edges, dtype, weighted, unknown)
        if ranks is not None:
            data = task_data(source)
            cut = WholeGraph.of(data).part(torch.tensor(owner), ranks.rank, ranks.size)
            source = graph_share(data, PartitionedGraph(cut, exchange)).train
    made = network(model, getattr(torch, dtype), channels, 3, "node", options)
    result = fitted(ranks, made, source, "classification", steps)
    return {**result, "received": 0 if exchange is None else exchange.received}
