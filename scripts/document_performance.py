"""Writes docs/performance.md from the measurements in results/bench.json.

python scripts/document_performance.py           # print
python scripts/document_performance.py --write   # write docs/performance.md
"""

from pathlib import Path

from pages import markdown_table, print_or_write

from adgn.bench.cases import CASES
from adgn.bench.records import read
from adgn.bench.tables import Table, tables

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "results" / "bench.json"

HEAD = """\
# Performance

How fast a network trains with this package and how much memory it takes, next to PyG's
`AntiSymmetricConv`. All numbers come from `results/bench.json`, which `adgn bench` writes; this
page is generated from it by `python scripts/document_performance.py --write`. Times differ between
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
each. PyG's batches of small
graphs are put together beforehand, outside the time measured.

- All ways start from the same weights and see the same data in the same order. The losses of the
  first two steps must agree within a thousandth; otherwise the case is an error and is not stored.
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

The native kernels serve float32 and float64 on the CPU with tanh, relu or no activation and sum or
GCN aggregation; all else is done by torch, with the same result. `adgn.graph.backend()` tells which
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

The kernels check all indices once per graph and read and write nothing else. `make sanitize` builds
them with the address and undefined-behaviour sanitizers and runs the tests of graphs (one without
nodes among them), operators, steps and layers with them; it had no finding on 2026-11-16.

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


def markdown(table: Table) -> str:
    """A table with its title and note."""
    body = markdown_table(table.head, table.rows)
    return f"### {table.title}\n\n{body}" + (f"\n{table.note}\n" if table.note else "")


def page() -> str:
    """The page as it must be now."""
    results = read(RESULTS)
    parts = [markdown(table) for table in tables(results)]
    missing = [f"`{name}`" for name in CASES if name not in results.cases]
    if missing:
        parts.append(f"Not measured yet: {', '.join(missing)}.\n")
    return HEAD + "\n".join([*parts, TAIL])


if __name__ == "__main__":
    print_or_write(__doc__, PAGE, page)
