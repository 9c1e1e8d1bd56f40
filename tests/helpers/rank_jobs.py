"""The work of a rank in tests: a process that joins a group once and then trains many examples."""

from datetime import timedelta

import torch
from torch._C._distributed_c10d import TCPStore

from adgn.data.packed import PackedGraphs
from adgn.distributed.exchange import RowExchange
from adgn.distributed.ranks import ALONE, ProcessRanks
from adgn.graph import PartitionedGraph
from adgn.nn import build_model
from adgn.training import FullGraph, PackedBatches, Trainer

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


def whole_graph(nodes, edges, dtype):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(nodes, 3, generator=generator, dtype=getattr(torch, dtype))
    y = torch.randint(0, 3, (nodes,), generator=generator)
    scored = torch.arange(nodes) % 3 != 1
    ends = torch.tensor(edges).long().view(-1, 2).t().contiguous()
    weight = torch.rand(nodes, generator=generator, dtype=x.dtype) + 0.5
    return FullGraph(x, ends, y, scored, weight=weight), x, ends


def partitioned(ranks, nodes, edges, owner, dtype, steps, model="adgn", train=True, **options):
    """Trains on a part of a graph; also what came in for each of the exchanges."""
    source, x, ends = whole_graph(nodes, edges, dtype)
    exchange = None
    if ranks is not None:
        exchange = RowExchange(ranks)
        part = PartitionedGraph(ends, None, torch.tensor(owner), ranks.rank, ranks.size, exchange)
        source = source.part_of(part, x[part.nodes])
    made = network(model, x.dtype, 4, 3, "node", options)
    result = fitted(ranks, made, source, "classification", steps)
    return {**result, "received": 0 if exchange is None else exchange.received}
