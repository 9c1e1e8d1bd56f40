"""Writes docs/performance.md from the measurements in results/.

python scripts/document_performance.py           # print
python scripts/document_performance.py --write   # write docs/performance.md
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pages import markdown_table, print_or_write

from adgn.bench.cases import CASES
from adgn.bench.records import BenchFile, CaseRecord, WayRecord, read
from adgn.bench.tables import Table, tables
from adgn.bench.targets import BEST_OF, OURS, nanoseconds_per_edge
from adgn.bench.workloads import WAYS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "results" / "bench.json"
NEEDED, RUNS, LARGE, PROFILE = (
    ROOT / "results" / f"{name}.json"
    for name in ("needed", "several-runs", "large-graphs", "step-profile")
)

HEAD = """\
# Performance

How fast a network trains with this package and how much memory it takes, next to PyG's
`AntiSymmetricConv`. All numbers come from `results/bench.json`, which `adgn bench` writes, and from
files of single benchmarks that are named with them; this page is generated from those by
`python scripts/document_performance.py --write`. Times differ between
machines and from run to run: only ratios taken in one run say something, and only where the load
average given below a table is small.

## What is measured

A training step: forward, backward and optimiser, on all nodes of a graph; for graph property
prediction an epoch of such steps. Each case is done in these ways:

- **adgn**: this package as it chooses its kernels by itself, on a plain `edge_index` and on
  features that are sparse where the data set's are. Batches of many graphs are selected within the
  time measured.
- **adgn, plain torch**: the same with `ADGN_BACKEND=torch`.
- **adgn, memory="checkpoint"**: as the first, with less kept for the backward pass.
- **PyG as documented**: PyG's `AntiSymmetricConv` with its default `GCNConv` (for sum aggregation
  a `MessagePassing` that adds), on `edge_index` and the dense features of PyG's data sets.
- **PyG, prebuilt CSR adjacency**: the same layer on an adjacency that is normalised and stored as
  CSR beforehand.
- **PyG, prebuilt CSR adjacency, CSR features**: the same with sparse features, where the data
  set's are sparse.
- **PyG, torch.compile**: the network of PyG's layer compiled, on edges that are normalised
  beforehand and on the CSR adjacency. The first step, which compiles, is told apart.

All but the first of PyG's are candidates for PyG at its best; the targets for that are held against
each. PyG's batches of small graphs are put together beforehand, outside the time measured.

The case `prediction` is the forward pass alone, under `torch.no_grad()`: this package keeps no
states for a backward pass then, and has two arrays of them at most, three where nodes are
renumbered. It says how many graphs and nodes per second each way predicts.

The case `fields` has other networks in place of other ways: **A-DGN with RK4** (four rates per
layer), **SWAN** and **SONAR, conservative**, each next to A-DGN with Euler's steps in the same run.
PyG has none of them, so that there is no ratio to PyG.

- All ways of one network start from the same weights and see the same data in the same order. The
  losses of the first two steps must agree within a thousandth; otherwise the case is an error and
  is not stored.
- All ways run in one process and take turns, with torch's number of threads. The time is the
  median over the turns; short steps are repeated until a turn takes a tenth of a second.
  Processor time is that of all threads, which other work on the machine disturbs less.
- Memory is the peak resident memory of a process that loads the data and trains two steps in one
  way, Python and all imports included (the same for every way).
- A way is left out of a larger graph where its cost on the graph before says that it would need
  more memory than is available, or a step more than two minutes (of the plain torch path and of
  PyG: three seconds, or what `--slowest-rival` says).

## Measure it yourself

```bash
adgn bench                      # all cases, into results/bench.json
adgn bench physics texas        # some; the others in the file stay
adgn bench --quick              # under two minutes, into results/bench-quick.json
adgn bench --large              # also the graph with 6·10⁷ edges: up to 20 GB
adgn bench --show               # print the tables of the file
```

`--data-root` is the folder of the data sets, `--repeats` the number of turns, `--max-edges` the
largest random graph, `--threads` torch's threads. Each case is stored as soon as it is done, with
its own date, commit and load average. A quick case never takes the place of a full one.

## Results

"""

TAIL = """\
## Which kernels serve

The native kernels serve float32 and float64 on the CPU: A-DGN with tanh, relu or no activation and
sum or GCN aggregation, by Euler, Runge-Kutta or Adams-Bashforth; SWAN's fixed operators, SONAR's
conservative wave, attention and cosines along edges, and every product with a graph. All else is
done by torch, with the same result. `adgn.graph.backend()` tells which
ones are in use and why:

```python
>>> from adgn.graph import backend, set_backend
>>> backend().name in ("native", "torch")
True
>>> with set_backend("torch"):
...     backend().name
'torch'

```

The environment variable `ADGN_BACKEND` sets it for a whole program: `auto` (the default), `native`
(an error where the native kernels cannot serve) or `torch`. Both use as many threads as
`torch.get_num_threads()` says.

Many small graphs side by side (a batch out of `adgn.graph.GraphBlocks`) are worked on graph by
graph: all layers of one, forward or back, while its states are in the cache. Rows with equally many
neighbours are gathered one after the other. A single graph whose states take 64 KB or less is such
a block too, and one thread works on it. Larger graphs are done layer by layer, on all threads.

The kernels check all indices once per graph and read and write nothing else. `make sanitize` builds
them with the address and undefined-behaviour sanitizers and runs the tests of graphs (one without
nodes among them), operators, steps and layers with them. The tests of the kernels, of attention,
cosines, integrators, the layer and the steps of ranks had no finding on 2026-11-18.

A process forked while other threads compute can go on computing: nothing in `adgn.graph` waits for
a thread that the child does not have. torch's own operations on large tensors do, once the parent
has used several threads: call `torch.set_num_threads(1)` in the child, as loaders' workers do.

## Memory and depth

`memory="full"`, the default, keeps one number per entry of the states and layer for the backward
pass, which finds the states of the forward pass again to the last bit. `memory="checkpoint"` keeps
the states of every √L-th of L layers and computes the layers between a second time: memory for
about 2√L layers, for about a third more time, and the same gradients. It works for every Φ; one
other than `sum` and `gcn` is called twice per layer, with the same random numbers, and changes its
running statistics once.

```python
>>> from adgn.nn import ADGN
>>> deep = ADGN(8, 64, 3, num_layers=1000, phi="gcn", memory="checkpoint")

```
"""


PARTS = """\
## Where the time of a step goes

Milliseconds of processor time of one thread, the least over many turns
(`python benchmarks/step_profile.py`); each part forward and back by itself. The floor is the
arithmetic of the integration's dense products at the rate of a large product of this machine, the
rest what a whole step takes beyond its parts.

"""

ATTENTION = """
Attention, in the first batch of graph property prediction (512 graphs, 20 layers of 30 units), an
epoch of which has ten: the native kernels are "attention", torch does the rest. GRAND evaluates
four rates per layer, and each of them again, with its gradient, when it goes back.

"""

SOME_NODES = """\
## Some nodes alone

What is read at a few nodes after L layers depends on their neighbours before the last layer, on
theirs before the one before, and so on. `model(x, graph, nodes=...)` returns the outputs of some
nodes and computes no more than that, where it is less than three quarters of the work of all nodes
and saves at least 30 000 (an edge counts one, a node 16); training and evaluation ask for the nodes
of their split this way.
Outputs and gradients are those of all nodes, up to rounding. It serves A-DGN with `sum` or `gcn`
and Euler's steps, natively or by a plain loop, and GCN, GAT, GraphSAGE, GIN and GCNII; not with
dropout, batch normalisation or PairNorm, which look at all nodes or draw a number for each. What is
needed is found once per graph and tensor of nodes.

A training step, least processor time of one thread, both ways in turns
(`python benchmarks/needed_nodes.py`). The share is that of the states which are computed; "all"
where too little would be saved.

"""

NOT_BUILT = """\
## What was measured and not built

**Several runs as one.** Runs that share graph and features could share calls. At most, a batch of
four runs gains what four copies of the graph in one step gain over four steps, one thread
(`python benchmarks/several_runs.py`); runs with weights of their own would gain less. On Texas a
step is mostly calls. On the larger graphs it is arithmetic, of which batching saves next to
nothing. The machine was busy with other work, so that only large differences count.

"""

STORES = """
**Stores past the cache.** What a step keeps for the way back is not read for a while. Writing it
with instructions that leave the cache alone was a little faster with one thread and slower with
two, on a grid of 400 000 nodes; on Physics no difference was seen.
"""

ORDER = """\
## Nodes in another order

A neighbour sum reads the states of neighbours. Where the states do not fit into the second-level
cache, it matters whether nodes with neighbours in common have numbers close to each other.
`integrate`, which runs all layers of A-DGN and its relatives, finds that out and renumbers the
nodes inside (`adgn.graph.locality`); what goes in and what comes out, gradients included, keeps the
user's order. It is done on the CPU by the native kernels, from four steps on and for states of at
least 2 MB.

The measure is how often an entry waits for a state, with a cache of 1 MB and for rows in the given
and in the new order; at four places of a large graph, or in all of a smaller one. The nodes are
renumbered where at least a tenth of the entries no longer wait. In the new order the node comes
next that has the largest share of its neighbours placed already. All of it is done once for each
graph, which a graph that is used for a single step may not earn back; the renumbered graph is kept
beside the given one, 16 to 24 bytes per edge. Results differ from those in the given order by
rounding alone, and are the same in each run.

Nanoseconds per edge, one thread, 64 channels (`python benchmarks/large_graphs.py --data FOLDER`): a
neighbour sum, and a layer of a training step (10 layers, forward and back; not of the largest
graphs, which would take many minutes), in both orders; and what is spent once on deciding and,
where it pays, on renumbering. Nodes drawn at random have no better order, and those of a power law
hardly one.

"""


def circumstances(measured: dict[str, Any], before: str = "") -> str:
    """When and on what it was measured."""
    machine = measured["machine"]
    return (
        f"\n{before}Measured {measured['date']} at commit {measured['commit']}: "
        f"{machine['processor']}, {machine['cores']} cores; kernels: "
        f"{machine['instruction_set']}; load average {measured['load_average']:.2f} at the start.\n"
    )


def parts_of_a_step() -> str:
    """The section on where the time goes."""
    if not PROFILE.exists():
        return PARTS + "Not measured yet.\n"
    measured = json.loads(PROFILE.read_text(encoding="utf-8"))
    names = ("floor", "integration", "encoder", "readout and loss", "optimiser")
    rows, shares, factors = [], {}, {}
    for case in measured["cases"]:
        times = case["ms"]
        rest = times["step"] - sum(times[name] for name in names[1:])
        values = [*(times[name] for name in names), rest, times["step"]]
        rows.append((case["case"], *(f"{value:.3g}" for value in values)))
        shares[case["case"]] = times["integration"] / times["step"]
        factors[case["case"]] = times["integration"] / times["floor"]
    least = min(shares, key=lambda name: shares[name])
    said = (
        f"The integration is {100 * min(shares.values()):.0f} to {100 * max(shares.values()):.0f} "
        f"% of a step, least on {least}, and takes {min(factors.values()):.1f} to "
        f"{max(factors.values()):.1f} times the arithmetic of its products.\n\n"
    )
    head = ("case", *names, "rest", "step")
    rate = f"A large product has {measured['dense_gflops']:.0f} GFLOP/s. "
    text = PARTS + said + markdown_table(head, rows) + attention(measured.get("attention", []))
    return text + circumstances(measured, rate)


def attention(measured: list[dict[str, Any]]) -> str:
    """The table of methods with attention; nothing where none was measured."""
    if not measured:
        return ""
    head = ("model", "products with weights", "attention", "rest", "step")
    rows = []
    for case in measured:
        times = case["ms"]
        rest = times["step"] - times["product"] - times["attention"]
        values = (times["product"], times["attention"], rest, times["step"])
        rows.append((case["model"], *(f"{value:.3g}" for value in values)))
    return ATTENTION + markdown_table(head, rows)


def some_nodes() -> str:
    """The section on outputs of some nodes."""
    if not NEEDED.exists():
        return SOME_NODES + "Not measured yet.\n"
    measured = json.loads(NEEDED.read_text(encoding="utf-8"))
    rows = [
        (
            case["case"],
            "all" if case["share"] is None else f"{100 * case['share']:.0f} %",
            *(f"{case[way]:.3g}" for way in ("all", "needed")),
            f"{case['all'] / case['needed']:.2f}",
        )
        for case in measured["cases"]
    ]
    head = ("case", "share", "all nodes, ms", "what is needed, ms", "ratio")
    ratios = [case["all"] / case["needed"] for case in measured["cases"] if case["share"]]
    said = (
        f"Where it serves, a step is {min(ratios):.1f} to {max(ratios):.1f} times faster.\n\n"
        if ratios
        else ""
    )
    return SOME_NODES + said + markdown_table(head, rows) + circumstances(measured)


def not_built() -> str:
    """The section on what did not pay."""
    runs = json.loads(RUNS.read_text(encoding="utf-8"))
    rows = [
        (
            case["task"],
            f"{case['one']:.3g}",
            f"{case['several']:.3g}",
            f"{case['at_most']:.2f}",
        )
        for case in runs["cases"]
    ]
    head = ("graph", "one run, ms", "four copies, ms", "gain at most")
    gains = [case["at_most"] for case in runs["cases"]]
    said = f"At most {min(gains):.2f} to {max(gains):.2f} times as many runs in the same time.\n\n"
    return NOT_BUILT + said + markdown_table(head, rows) + circumstances(runs) + STORES


def another_order() -> str:
    """The section on the numbers of nodes."""
    measured = json.loads(LARGE.read_text(encoding="utf-8"))
    rows, gains = [], {}
    for case in measured["cases"]:
        times = case["ns"]
        shown = [f"{times[key]:.3g}" if key in times else "–" for key in ("sum", "layer")]
        anew = [
            f"{times[key]:.3g}" if case["renumbered"] and key in times else "–"
            for key in ("sum_anew", "layer_anew")
        ]
        size = f"{case['edges'] / 1e6:.2g}·10^6"
        pairs = [text for pair in zip(shown, anew, strict=True) for text in pair]
        rows.append((case["graph"], size, *pairs, f"{times['deciding']:.3g}"))
        if case["renumbered"] and "layer" in times:
            gains[f"{case['graph']}, {size} edges"] = times["layer"] / times["layer_anew"]
    head = ("graph", "edges", "sum", "sum, anew", "layer", "layer, anew", "once")
    least, most = (choose(gains, key=lambda name: gains[name]) for choose in (min, max))
    said = (
        f"Where nodes are renumbered, a layer is {gains[least]:.2f} ({least}) to {gains[most]:.2f} "
        f"times ({most}) as fast.\n\n"
    )
    return ORDER + said + markdown_table(head, rows) + circumstances(measured)


def markdown(table: Table, said: str) -> str:
    """A table with its title, what it says, and its note."""
    body = markdown_table(table.head, table.rows)
    note = f"\n{table.note}\n" if table.note else ""
    return f"### {table.title}\n\n{said}\n\n{body}{note}"


def conclusions(results: BenchFile, shown: list[Table]) -> list[str]:
    """What each of the tables says, in their order."""
    said = []
    for table in shown:
        name = table.title.split(":")[0]
        case = results.cases.get(name)
        said.append(_targets_met(table) if case is None else _conclusion(name, case))
    return said


def _targets_met(table: Table) -> str:
    met = [row for row in table.rows if row[-1] == "yes"]
    missed = [f"{row[0]}, {row[1]} ({row[3]})" for row in table.rows if row[-1] == "no"]
    absent = len(table.rows) - len(met) - len(missed)
    return (
        f"{len(met)} of {len(table.rows)} targets are met"
        + (f", {absent} are not measured" if absent else "")
        + (f". Missed: {'; '.join(missed)}." if missed else ".")
    )


def _conclusion(name: str, case: CaseRecord) -> str:
    if name == "depth":
        full, checkpoint = (case.points[-1].ways.get(way, WayRecord()) for way in CASES[name].ways)
        if not full.peak_mb or not checkpoint.peak_mb or not full.seconds or not checkpoint.seconds:
            return "Not all depths are measured."
        return (
            f'With {case.points[-1].layers} layers `memory="checkpoint"` takes '
            f"{checkpoint.peak_mb / full.peak_mb:.2f} of the memory and "
            f"{checkpoint.seconds / full.seconds:.2f} of the time."
        )
    if len(case.points) > 1:
        costs = [
            nanoseconds_per_edge(point, point.ways[OURS])
            for point in case.points
            if point.ways.get(OURS, WayRecord()).seconds
        ]
        best = [_ratios(point.ways, BEST_OF)[0] for point in case.points]
        times = [ratio for ratio in best if ratio is not None]
        return (
            f"An edge takes {min(costs):.0f} to {max(costs):.0f} ns per layer from the smallest to "
            "the largest graph."
            + (
                f" PyG at its best takes {min(times):.1f} to {max(times):.1f} times as long."
                if times
                else ""
            )
        )
    ways = case.points[0].ways
    if "pyg" in ways:
        parts = []
        for title, names in (("as documented", ("pyg",)), ("at its best", BEST_OF)):
            time, memory = _ratios(ways, names)
            if time is not None and memory is not None:
                parts.append(
                    f"{title} takes {time:.1f} times as long and {memory:.1f} times the memory"
                )
        return f"PyG {', '.join(parts)}."
    parts = []
    for way in ways:
        time, memory = _ratios(ways, (way,))
        if way != OURS and time is not None and memory is not None:
            parts.append(f"{WAYS[way]} takes {time:.2f} of its time and {memory:.2f} of its memory")
    return f"Beside {WAYS[OURS]}: {'; '.join(parts)}."


def _ratios(
    ways: Mapping[str, WayRecord], names: Iterable[str]
) -> tuple[float | None, float | None]:
    """Least time and memory of some ways, as multiples of ours."""
    ours, found = ways.get(OURS, WayRecord()), [ways[name] for name in names if name in ways]
    times = [way.seconds for way in found if way.seconds]
    peaks = [way.peak_mb for way in found if way.peak_mb]
    return (
        min(times) / ours.seconds if times and ours.seconds else None,
        min(peaks) / ours.peak_mb if peaks and ours.peak_mb else None,
    )


def page() -> str:
    """The page as it must be now."""
    results = read(RESULTS)
    shown = tables(results)
    parts = [markdown(*pair) for pair in zip(shown, conclusions(results, shown), strict=True)]
    missing = [f"`{name}`" for name in CASES if name not in results.cases]
    if missing:
        parts.append(f"Not measured yet: {', '.join(missing)}.\n")
    sections = [parts_of_a_step(), some_nodes(), another_order(), TAIL, not_built()]
    return HEAD + "\n".join([*parts, *sections])


if __name__ == "__main__":
    print_or_write(__doc__, PAGE, page)
