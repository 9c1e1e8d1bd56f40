"""The results as tables, for the terminal and for the docs."""

from collections.abc import Collection
from dataclasses import dataclass

from adgn.bench.cases import CASES
from adgn.bench.records import BenchFile, CaseRecord, PointRecord, WayRecord
from adgn.bench.targets import NOTHING, OURS, nanoseconds_per_edge, power_of_ten, target_rows
from adgn.bench.workloads import WAYS

TARGET_HEAD = ("case", "what", "target", "measured", "met")
COMPARISON_HEAD = (
    *("way", "time, s", "from – to", "× adgn", "processor time, s", "× adgn"),
    *("peak memory, MB", "× adgn", "first step, s"),
)
PREDICTION_HEAD = (
    *("data", "way", "time, s", "× adgn", "graphs per second", "nodes per second"),
    *("peak memory, MB", "first time, s"),
)
SIZES_HEAD = (
    *("directed edges", "nodes", "way", "step, s", "ns per edge and layer", "× adgn"),
    *("peak memory, MB", "bytes per edge"),
)
Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table with a title and a line about where its numbers come from."""

    title: str
    head: Row
    rows: tuple[Row, ...]
    note: str = ""


def tables(results: BenchFile, names: Collection[str] | None = None) -> list[Table]:
    """All targets, then one table per case, in the order of `CASES`; nothing without results.

    Args:
        results: What was measured.
        names: The cases to show; `None`: all. The targets are those of all cases anyway.

    Example:
        >>> from pathlib import Path
        >>> from adgn.bench.records import read
        >>> [table.title for table in tables(read(Path("results/bench.json")), ["texas"])]
        ['Targets', 'texas...']
    """
    cases = {name: results.cases[name] for name in CASES if name in results.cases}
    shown = [name for name in cases if names is None or name in names]
    if not shown:
        return []
    targets = Table("Targets", TARGET_HEAD, tuple(target_rows(cases)))
    return [targets, *(_case_table(name, cases[name]) for name in shown)]


def _case_table(name: str, case: CaseRecord) -> Table:
    title, note, first = f"{name}: {CASES[name].summary}", _note(case), case.points[0]
    if name == "depth":
        ways = CASES["depth"].ways
        heads = ((f"{WAYS[way]}: step, s", "ms per layer", "peak memory, MB") for way in ways)
        rows = tuple(_depth_row(point, ways) for point in case.points)
        return Table(title, ("layers", *(text for head in heads for text in head)), rows, note)
    if first.predict:
        rows = tuple(row for point in case.points for row in _prediction_rows(point))
        about = " ".join(f"{point.data}: {_about(point)}" for point in case.points)
        return Table(title, PREDICTION_HEAD, rows, f"{about} {note}")
    if len(case.points) > 1:
        rows = tuple(row for point in case.points for row in _size_rows(point, case.imports_mb))
        return Table(title, SIZES_HEAD, rows, note)
    return Table(title, COMPARISON_HEAD, _comparison_rows(first), f"{_about(first)} {note}")


def _comparison_rows(point: PointRecord) -> tuple[Row, ...]:
    ours = point.ways.get(OURS, WayRecord())
    return tuple(
        (
            WAYS[way],
            _seconds(record.seconds),
            " – ".join(_seconds(end(record.times)) for end in (min, max))
            if record.times
            else record.left_out,
            _times(record.seconds, ours.seconds),
            _seconds(record.processor_seconds),
            _times(record.processor_seconds, ours.processor_seconds),
            _number(record.peak_mb),
            _times(record.peak_mb, ours.peak_mb),
            _seconds(record.first_seconds),
        )
        for way, record in point.ways.items()
    )


def _size_rows(point: PointRecord, imports_mb: float) -> list[Row]:
    rows: list[Row] = []
    ours = point.ways.get(OURS, WayRecord()).seconds
    for way, record in point.ways.items():
        start = (power_of_ten(point.edges), f"{point.nodes}", WAYS[way])
        if record.seconds is None:
            rows.append((*start, record.left_out, *[NOTHING] * 4))
            continue
        own = None if record.peak_mb is None else 1e6 * (record.peak_mb - imports_mb)
        step, per_edge = _seconds(record.seconds), f"{nanoseconds_per_edge(point, record):.2f}"
        memory = (_number(record.peak_mb), _number(None if own is None else own / point.edges))
        rows.append((*start, step, per_edge, _times(record.seconds, ours), *memory))
    return rows


def _prediction_rows(point: PointRecord) -> list[Row]:
    rows: list[Row] = []
    ours = point.ways.get(OURS, WayRecord()).seconds
    for way, record in point.ways.items():
        start = (point.data, WAYS[way])
        if record.seconds is None:
            rows.append((*start, record.left_out, *[NOTHING] * 5))
            continue
        rates = (_rate(count / record.seconds) for count in (point.graphs, point.nodes))
        cost = (_seconds(record.seconds), _times(record.seconds, ours), *rates)
        first = _seconds(record.first_seconds)
        rows.append((*start, *cost, _number(record.peak_mb), first))
    return rows


def _depth_row(point: PointRecord, ways: Collection[str]) -> Row:
    row = [str(point.layers)]
    for way in ways:
        record = point.ways.get(way, WayRecord())
        if record.seconds is None:
            row += [record.left_out or NOTHING, NOTHING, NOTHING]
        else:
            per_layer = f"{1e3 * record.seconds / point.layers:.2f}"
            row += [_seconds(record.seconds), per_layer, _number(record.peak_mb)]
    return tuple(row)


def _about(point: PointRecord) -> str:
    graphs = f"{point.graphs} graphs, " if point.graphs > 1 else ""
    return (
        f"{graphs}{point.nodes} nodes, {point.edges} directed edges, {point.features} features; "
        f"{point.layers} layers × {point.hidden}, {point.phi}."
    )


def _note(case: CaseRecord) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in case.versions.items())
    machine = case.machine
    instructions = f" ({machine.instruction_set})" if machine.instruction_set else ""
    return (
        f"{'Quick run. ' if case.quick else ''}Measured {case.date} at commit {case.commit}: "
        f"{machine.processor}, {machine.cores} cores, {machine.memory_gb:g} GB, {machine.system}; "
        f"kernels: {case.backend}{instructions}, {case.threads} threads; load average "
        f"{case.load_average:.2f} at the start; median of at most {case.repeats} turns; "
        f"{case.imports_mb:.0f} MB of each peak are Python and its imports; {versions}."
        + (f" Not measured: {case.not_measured}." if case.not_measured else "")
    )


def _seconds(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3g}"


def _rate(value: float) -> str:
    """Three digits that count."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.0f}"


def _times(value: float | None, ours: float | None) -> str:
    return NOTHING if value is None or not ours else f"{value / ours:.2f}"
