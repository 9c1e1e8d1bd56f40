"""`adgn plan` and `adgn partition`: before training on several machines."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from adgn.cli.console import PluginOption, print_table, say
from adgn.cli.names import complete_task

if TYPE_CHECKING:
    from torch import Tensor

    from adgn.distributed.plan import Need, Workload

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def plan(
    task: Annotated[
        str | None,
        Argument(
            help="A task from `adgn tasks`, or an edge table (.csv, .parquet, …); may be left out "
            "with --nodes and --edges.",
            autocompletion=complete_task,
        ),
    ] = None,
    layers: Annotated[int, Option(help="Layers of the network.")] = 20,
    hidden: Annotated[int, Option(help="Channels of the states.")] = 64,
    machines: Annotated[
        int | None, Option(help="Machines like this one. Default: 2, 4, 8 and 16.")
    ] = None,
    nodes: Annotated[float | None, Option(help="Nodes of a graph, such as 3e9.")] = None,
    edges: Annotated[float | None, Option(help="Its edges, such as 1e11.")] = None,
    features: Annotated[int | None, Option(help="Features of each node.")] = None,
    memory: Annotated[
        float | None, Option(help="GB of memory of each machine. Default: what is free here.")
    ] = None,
    link: Annotated[
        float | None,
        Option(help="Gbit/s between machines. Default: what two ranks of this machine have."),
    ] = None,
    latency: Annotated[
        float | None,
        Option(
            help="Microseconds of the smallest exchange between machines. Default: that of two "
            "ranks of this machine, measured."
        ),
    ] = None,
    halo: Annotated[
        float | None,
        Option(
            help="Rows that a rank gets from others, in units of its own nodes. Default: that of "
            "a partition of the graph, where there is one to look at; else 0.5."
        ),
    ] = None,
    speed: Annotated[
        float, Option(help="How many times as fast as this machine each of them is.")
    ] = 1.0,
) -> None:
    """Say what memory and time a training step of A-DGN takes, here and on several machines.

    Speeds are measured on this machine, in about a second; the rest is worked out. Times are
    estimates: within a factor of two or three.

    Examples:

        adgn plan sssp --layers 20 --hidden 30

        adgn plan physics --layers 10 --hidden 64 --machines 2

        adgn plan --nodes 3e9 --edges 1e11 --layers 20 --hidden 64 --memory 512 --link 100
    """
    from dataclasses import replace

    from adgn._util.environment import available_bytes
    from adgn.distributed.plan import machines_needed, measure_speeds, need

    for name, value in (("--speed", speed), ("--link", link), ("--latency", latency)):
        if value is not None and not value > 0:
            raise typer.BadParameter("give a number above 0", param_hint=name)
    found, edge_index = _workload(task, layers, hidden, nodes, edges, features)
    speeds = measure_speeds(
        None if link is None else link * 1e9 / 8, None if latency is None else latency * 1e-6
    )
    say(f"this machine: {speeds}")
    speeds = replace(
        speeds,
        edges=speed * speeds.edges,
        dense=speed * speeds.dense,
        memory=speed * speeds.memory,
    )
    each = available_bytes() if memory is None else memory * 1e9
    shared = "batches of graphs" if found.graphs > 1 else "one graph"
    say(
        f"{shared}: {found.nodes:,.0f} nodes, {found.edges:,.0f} edges, {found.features:,} features"
        f"; {layers} layers of {hidden} channels; {_size(each)} of memory per machine"
    )
    needs: list[Need] = []
    for count in [1, *([machines] if machines else (2, 4, 8, 16))]:
        share = _halo_share(found, edge_index, count, halo)
        for checkpoint in (False, True):
            needs.append(
                need(
                    found,
                    speeds,
                    machines=count,
                    memory=each,
                    checkpoint=checkpoint,
                    halo_share=share,
                )
            )
    _show(needs)
    fitting = [one for one in needs if one.fits]
    if fitting:
        best = min(fitting, key=lambda one: (one.machines, one.seconds))
        say(f"fits: {_advice(best)}")
        _say_reading(best, found)
        return
    least = machines_needed(found, speeds, each, 0.5 if halo is None else halo)
    say("none of these fits in memory")
    if least is None:
        say(
            "no number of such machines is enough: the states of one node, or the weights, are "
            "too large"
        )
        return
    _show([least])
    say(
        f"needed: {least.machines:,} machines with {_size(each)} each, {_size(least.memory)} of it "
        f"in use: {_advice(least)}"
    )
    _say_reading(least, found)


def _workload(
    task: str | None,
    layers: int,
    hidden: int,
    nodes: float | None,
    edges: float | None,
    features: int | None,
) -> "tuple[Workload, Tensor | None]":
    """What is to be trained, and its edges where they are at hand."""
    from adgn.distributed.plan import Workload
    from adgn.training import resolve_config
    from adgn.training.tasks import task_entry

    if task is None:
        if nodes is None or edges is None:
            raise typer.BadParameter("give a TASK, an edge table, or --nodes and --edges")
        return Workload(nodes, edges, layers, hidden, features or 128), None
    if nodes is not None or edges is not None:
        raise typer.BadParameter("they are those of the task; leave them out", param_hint="--nodes")
    if Path(task).suffix and Path(task).exists():
        ends, count = _edge_table(Path(task))
        return Workload(count, ends.size(1), layers, hidden, features or 128), ends
    config = resolve_config({"task": {"name": task}})
    size_of = task_entry(config.task.name).size
    if size_of is None:
        raise typer.BadParameter(
            f"the size of {task!r} is not known before it is made; give --nodes and --edges",
            param_hint="TASK",
        )
    size = size_of(config)
    density = 0.1 if size.in_channels > 100 else 1.0
    workload = Workload(
        size.nodes,
        size.edges,
        layers,
        hidden,
        features or size.in_channels,
        size.out_channels,
        density,
        size.graphs,
    )
    if size.graphs > 1:
        return workload, None
    from adgn.data import load

    try:
        return workload, load(config.task.name).edge_index
    except (OSError, ValueError, RuntimeError):  # not there yet; nothing is downloaded for a plan
        return workload, None


def _edge_table(path: Path) -> "tuple[Tensor, int]":
    """The edges of a table, with nodes numbered as they come, and how many nodes there are."""
    import pyarrow as pa
    import torch

    from adgn.data.own.tables import open_table
    from adgn.data.own.textfiles import TextFormat

    table = open_table(path, "edges", TextFormat())
    columns = next(
        (
            list(pair)
            for pair in (("source", "target"), ("src", "dst"))
            if {*pair} <= {*table.names}
        ),
        table.names[:2],
    )
    if len(columns) < 2:
        raise typer.BadParameter(f"{path} has one column; an edge has two ends", param_hint="TASK")
    read = table.read(columns, ids=columns)
    ends = pa.chunked_array([*read.column(0).chunks, *read.column(1).chunks])
    numbers = ends.dictionary_encode().combine_chunks()
    indices = torch.from_numpy(numbers.indices.to_numpy(zero_copy_only=False).copy()).long()
    return indices.view(2, -1), len(numbers.dictionary)


def _halo_share(
    work: "Workload", edge_index: "Tensor | None", machines: int, given: float | None
) -> float:
    from adgn.distributed.partition import partition
    from adgn.distributed.plan import halo_share_of

    if given is not None:
        return given
    if machines == 1 or work.graphs > 1 or edge_index is None:
        return 0.5
    if machines > work.nodes:
        return 0.5
    owner = partition(edge_index, int(work.nodes), machines)
    return halo_share_of(edge_index, owner, machines)


def _show(needs: "list[Need]") -> None:
    rows = [
        [
            f"{one.machines:,}",
            one.mode,
            "checkpoint" if one.checkpoint else "full",
            _size(one.memory),
            _size(one.states),
            _size(one.graph + one.features),
            _size(one.reading) if one.reading else "",
            _seconds(one.compute),
            _seconds(one.exchange),
            "fits" if one.fits else "too large",
        ]
        for one in needs
    ]
    names = ["machines", "mode", "memory=", "of each", "states", "data", "reading", "compute"]
    names += ["exchange", ""]
    print_table(names, rows)


def _say_reading(one: "Need", work: "Workload") -> None:
    """What the plan needs before the first step; of batches of graphs that is not known."""
    if work.graphs > 1:
        return
    if one.machines == 1:
        say(f"reading: {_size(one.reading)} while the graph is read and its operators are made")
        return
    say(
        f"reading, for {one.machines:,} machines: {_size(one.reading)} on each with shards (adgn "
        f"partition --shards), {_size(one.reading_whole)} without; writing the shards takes a "
        f"machine with the whole graph in memory, {_size(16 * work.edges)} for its edges alone"
    )


def _advice(one: "Need") -> str:
    how = {
        "one process": "adgn train",
        "batches over ranks": "adgn train --workers N, torchrun or Ray",
        "one graph over ranks": "adgn train --workers N --partition FOLDER, torchrun or Ray",
    }[one.mode]
    option = " --set model.memory=checkpoint" if one.checkpoint else ""
    return f"{one.mode}, about {_seconds(one.seconds)} per step ({how}{option})"


def _size(count: float) -> str:
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:,.3g} {name}"
    return f"{count:,.0f} B"


def _seconds(count: float) -> str:
    return f"{count:.3g} s" if count >= 1 else f"{1e3 * count:.3g} ms"


def partition_graph(
    task: Annotated[
        str,
        Argument(
            help="A task with one graph, or an edge table (.csv, .parquet, …).",
            autocompletion=complete_task,
        ),
    ],
    parts: Annotated[int, Option(help="How many ranks will share the graph.")],
    out: Annotated[
        Path | None, Option(help="The file to write, for `adgn train --partition`.")
    ] = None,
    shards: Annotated[
        Path | None,
        Option(
            help="A folder to write, for `adgn train --partition`, with the data of each rank in a "
            "file of its own: a rank then reads nothing else."
        ),
    ] = None,
    method: Annotated[
        str, Option(help="metis (needs pymetis), ldg, blocks, or auto: metis where installed.")
    ] = "auto",
    hidden: Annotated[int, Option(help="Channels of the states, to tell bytes.")] = 64,
    settings: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the task, such as task.split=3; may be repeated.",
        ),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Spread the nodes of a graph over ranks, and say what it costs.

    Examples:

        adgn partition physics --parts 2

        adgn partition physics --parts 4 --method metis --out physics-4.safetensors

        adgn partition physics --parts 2 --shards physics-2
    """
    from adgn.distributed.partition import partition, partition_quality, write_partition
    from adgn.training import parse_setting, resolve_config
    from adgn.training.batches import FullGraph
    from adgn.training.seeding import resolve_device
    from adgn.training.shards import write_shards
    from adgn.training.shares import WholeGraph
    from adgn.training.tasks import task_entry

    if Path(task).suffix and Path(task).exists():
        if shards is not None:
            raise typer.BadParameter(
                "an edge table has neither features nor targets; give a task", param_hint="--shards"
            )
        edge_index, count = _edge_table(Path(task))
    else:
        config = resolve_config({"task": {"name": task}}, *map(parse_setting, settings or ()))
        data = task_entry(config.task.name).build(config, resolve_device("cpu"), None)
        if not isinstance(data.train, FullGraph):
            raise typer.BadParameter(
                f"{task!r} has many graphs, which ranks share without a partition",
                param_hint="TASK",
            )
        graph = WholeGraph.of(data)
        edge_index, count = graph.edge_index, graph.num_nodes
    owner = partition(edge_index, count, parts, method)  # type: ignore[arg-type]
    quality = partition_quality(edge_index, owner, parts)
    say(str(quality))
    print_table(
        ["rank", "nodes", "edges", "halo", "in per product"],
        [
            [str(rank), f"{n:,}", f"{e:,}", f"{h:,}", _size(4.0 * hidden * h)]
            for rank, (n, e, h) in enumerate(
                zip(quality.nodes, quality.entries, quality.halo, strict=True)
            )
        ],
    )
    if out is not None:
        write_partition(out, owner, edge_index, parts)
        say(f"written to {out}")
    if shards is not None:
        files = write_shards(shards, data, owner, parts, config.task)
        total = sum(file.stat().st_size for file in files)
        say(f"{len(files)} shards written to {shards} ({_size(total)})")
