"""The results as tables, for the terminal and for the docs."""

from collections.abc import Collection
from dataclasses import dataclass

from adgn.bench.cases import CASES
from adgn.bench.records import BenchFile, CaseRecord, PointRecord, WayRecord
from adgn.bench.targets import NOTHING, nanoseconds_per_edge, target_rows
from adgn.bench.workloads import WAYS

__all__ = ["Table", "tables"]

OURS = "adgn"


@dataclass(frozen=True)
class Table:
    """A table with a title and a line about where its numbers come from."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def tables(results: BenchFile, names: Collection[str] | None = None) -> list[Table]:
    """All targets, then one table per case, in the order of `CASES`; nothing without results.

    Args:
        results: What was measured.
        names: The cases to show; `None`: all. The targets are those of all cases anyway.

    Example:
        >>> from pathlib import Path
        >>> from adgn.bench import read
        >>> [table.title for table in tables(read(Path("results/bench.json")), ["texas"])]
        ['Targets', 'texas...']
    """
    cases = {name: results.cases[name] for name in CASES if name in results.cases}
    shown = [name for name in cases if names is None or name in names]
    if not shown:
        return []
    targets = Table(
        "Targets", ("case", "what", "target", "measured", "met"), (*target_rows(cases),)
    )
    return [targets, *(_case_table(name, cases[name]) for name in shown)]


def _case_table(name: str, case: CaseRecord) -> Table:
    title = f"{name}: {CASES[name].summary}"
    if name == "depth":
        return Table(title, *_depth(case), _note(case))
    if len(case.points) > 1:
        return Table(title, *_sizes(case), _note(case))
    return Table(title, *_comparison(case.points[0]), f"{_about(case.points[0])} {_note(case)}")


def _comparison(point: PointRecord) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    head = (
        *("way", "time, s", "from – to", "× adgn"),
        *("processor time, s", "× adgn", "peak memory, MB", "× adgn"),
    )
    ours = point.ways.get(OURS, WayRecord())
    rows = tuple(
        (
            WAYS[way],
            _seconds(record.seconds),
            f"{_seconds(min(record.times))} – {_seconds(max(record.times))}"
            if record.times
            else record.left_out,
            _times(record.seconds, ours.seconds),
            _seconds(record.processor_seconds),
            _times(record.processor_seconds, ours.processor_seconds),
            _number(record.peak_mb),
            _times(record.peak_mb, ours.peak_mb),
        )
        for way, record in point.ways.items()
    )
    return head, rows


def _sizes(case: CaseRecord) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    head = (
        "directed edges",
        "nodes",
        "way",
        "step, s",
        "ns per edge and layer",
        "× adgn",
        "peak memory, MB",
        "bytes per edge",
    )
    rows = []
    for point in case.points:
        ours = point.ways.get(OURS, WayRecord()).seconds
        for way, record in point.ways.items():
            start = (f"{point.edges:.0e}".replace("e+0", "·10^"), f"{point.nodes}", WAYS[way])
            if record.seconds is None:
                rows.append((*start, record.left_out, *[NOTHING] * 4))
                continue
            memory = (record.peak_mb or 0.0) - case.imports_mb
            rows.append(
                (
                    *start,
                    _seconds(record.seconds),
                    f"{nanoseconds_per_edge(point, record):.2f}",
                    _times(record.seconds, ours),
                    _number(record.peak_mb),
                    f"{memory * 1e6 / point.edges:.0f}" if record.peak_mb else NOTHING,
                )
            )
    return head, tuple(rows)


def _depth(case: CaseRecord) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    head = ["layers"]
    for way in CASES["depth"].ways:
        head += [f"{WAYS[way]}: step, s", "ms per layer", "peak memory, MB"]
    rows = []
    for point in case.points:
        row = [str(point.layers)]
        for way in CASES["depth"].ways:
            record = point.ways.get(way, WayRecord())
            if record.seconds is None:
                row += [record.left_out or NOTHING, NOTHING, NOTHING]
            else:
                per_layer = f"{1e3 * record.seconds / point.layers:.2f}"
                row += [_seconds(record.seconds), per_layer, _number(record.peak_mb)]
        rows.append(tuple(row))
    return tuple(head), tuple(rows)


def _about(point: PointRecord) -> str:
    graphs = f"{point.graphs} graphs, " if point.graphs > 1 else ""
    return (
        f"{graphs}{point.nodes} nodes, {point.edges} directed edges, {point.features} features; "
        f"{point.layers} layers × {point.hidden}, {point.phi}."
    )


def _note(case: CaseRecord) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in case.versions.items())
    machine = case.machine
    quick = "Quick run. " if case.quick else ""
    instructions = f" ({machine.instruction_set})" if machine.instruction_set else ""
    return (
        f"{quick}Measured {case.date} at commit {case.commit}: {machine.processor}, "
        f"{machine.cores} cores, {machine.memory_gb:g} GB, {machine.system}; kernels: "
        f"{case.backend}{instructions}, {case.threads} threads; load average "
        f"{case.load_average:.2f} at the start; median of at most {case.repeats} turns; "
        f"{case.imports_mb:.0f} MB of each peak are Python and its imports; {versions}."
        + (f" Not measured: {case.not_measured}." if case.not_measured else "")
    )


def _seconds(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3g}"


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.0f}"


def _times(value: float | None, ours: float | None) -> str:
    return NOTHING if value is None or not ours else f"{value / ours:.2f}"
