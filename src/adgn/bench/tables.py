"""The results as tables, for the terminal and for the docs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from adgn.bench.cases import CASES, TARGETS, Target
from adgn.bench.records import BenchFile, CaseRecord, PointRecord, WayRecord
from adgn.bench.workloads import WAYS

__all__ = ["Table", "tables"]

OURS = "adgn"
BEST_OF = ("pyg-csr", "pyg-csr-sparse")
LARGE_LIMIT_MB = 20_000
FLAT_FROM, FLAT_TO, FLAT_WITHIN = 1_000_000, 40_000_000, 2.0
NOTHING = "–"


@dataclass(frozen=True)
class Table:
    """A table with a title and a line about where its numbers come from."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def tables(results: BenchFile) -> list[Table]:
    """The targets, then one table per case, in the order of `CASES`."""
    cases = {name: results.cases[name] for name in CASES if name in results.cases}
    found = [_case_table(name, case) for name, case in cases.items()]
    rows = tuple(_target_rows(cases))
    head = ("case", "what", "target", "measured", "met")
    return [Table("Targets", head, rows), *found] if rows else found


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
                    f"{_per_edge(point, record):.2f}",
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


def _target_rows(cases: Mapping[str, CaseRecord]) -> Iterator[tuple[str, ...]]:
    for target in TARGETS:
        if target.case in cases:
            yield from _ratio_rows(target, cases[target.case])
    if "scale" in cases:
        yield from _scale_rows(cases["scale"])
    if "depth" in cases:
        yield from _depth_rows(cases["depth"])
    if "large" in cases:
        for way, record in cases["large"].points[0].ways.items():
            if record.peak_mb is not None:
                yield (
                    _case_name("large", cases["large"]),
                    f"peak memory, {WAYS[way]}",
                    f"≤ {LARGE_LIMIT_MB} MB",
                    f"{record.peak_mb:.0f} MB",
                    _met(record.peak_mb <= LARGE_LIMIT_MB),
                )


def _ratio_rows(target: Target, case: CaseRecord) -> Iterator[tuple[str, ...]]:
    ways = case.points[0].ways

    def cost(way: str) -> float | None:
        record = ways.get(way, WayRecord())
        return record.seconds if target.quantity == "time" else record.peak_mb

    ours = cost(OURS)
    aims = {"pyg": target.documented} | dict.fromkeys(BEST_OF, target.best)
    for way, aim in aims.items():
        theirs = cost(way)
        if ours is None or theirs is None:
            continue
        yield (
            _case_name(target.case, case),
            f"{target.quantity} of {WAYS[way]} / ours",
            f"≥ {aim:g}",
            f"{theirs / ours:.2f}",
            _met(theirs / ours >= aim),
        )


def _scale_rows(case: CaseRecord) -> Iterator[tuple[str, ...]]:
    inside = [p for p in case.points if p.edges >= FLAT_FROM and p.ways[OURS].times]
    costs = [_per_edge(point, point.ways[OURS]) for point in inside]
    if len(costs) > 1:
        whole = inside[-1].edges >= FLAT_TO
        reach = f"{inside[0].edges:.0e} to {inside[-1].edges:.0e}".replace("e+0", "·10^")
        yield (
            _case_name("scale", case),
            f"most / least time per edge, {reach} edges",
            f"≤ {FLAT_WITHIN:g}",
            f"{max(costs) / min(costs):.2f}",
            _met(max(costs) / min(costs) <= FLAT_WITHIN) if whole else "not measured to the end",
        )


def _depth_rows(case: CaseRecord) -> Iterator[tuple[str, ...]]:
    peaks = {
        (point.layers, way): record.peak_mb
        for point in case.points
        for way, record in point.ways.items()
    }
    deep, shallow = peaks.get((1000, "checkpoint")), peaks.get((100, OURS))
    if deep is not None and shallow is not None:
        yield (
            _case_name("depth", case),
            'memory of 1000 layers with "checkpoint" / 100 with "full"',
            "≤ 1",
            f"{deep / shallow:.2f}",
            _met(deep <= shallow),
        )


def _case_name(name: str, case: CaseRecord) -> str:
    return f"{name} (quick)" if case.quick else name


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


def _per_edge(point: PointRecord, record: WayRecord) -> float:
    """Nanoseconds per directed edge and layer."""
    return 1e9 * (record.seconds or 0.0) / (point.edges * point.layers)


def _seconds(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3g}"


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.0f}"


def _times(value: float | None, ours: float | None) -> str:
    return NOTHING if value is None or not ours else f"{value / ours:.2f}"


def _met(met: bool) -> str:
    return "yes" if met else "no"
