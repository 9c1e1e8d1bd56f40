"""What was aimed at, beside what was measured."""

from collections.abc import Iterator, Mapping

from adgn.bench.cases import CASES, LARGEST_EDGES, TARGETS, Target
from adgn.bench.records import CaseRecord, PointRecord, WayRecord
from adgn.bench.workloads import WAYS

__all__ = ["NOTHING", "NOT_MEASURED", "nanoseconds_per_edge", "target_rows"]

OURS = "adgn"
BEST_OF = ("pyg-csr", "pyg-csr-sparse")
LARGE_EDGES, LARGE_LIMIT_MB = 60_000_000, 20_000
FLAT_FROM, FLAT_TO, FLAT_WITHIN = 1_000_000, LARGEST_EDGES, 2.0
DEEP, SHALLOW = 1000, 100
NOTHING = "–"
NOT_MEASURED = "not measured"
NO_RECORD = WayRecord()

Row = tuple[str, str, str, str, str]


def target_rows(cases: Mapping[str, CaseRecord]) -> Iterator[Row]:
    """Case, what, target, measured, met: a row for every target, measured or not."""
    for target in TARGETS:
        yield from _ratio_rows(target, cases.get(target.case))
    yield _scale_row(cases.get("scale"))
    yield _depth_row(cases.get("depth"))
    yield from _large_rows(cases.get("large"))


def nanoseconds_per_edge(point: PointRecord, record: WayRecord) -> float:
    """Nanoseconds per directed edge and layer."""
    return 1e9 * (record.seconds or 0.0) / (point.edges * point.layers)


def _ratio_rows(target: Target, case: CaseRecord | None) -> Iterator[Row]:
    ways = case.points[0].ways if case is not None else {}

    def cost(way: str) -> float | None:
        record = ways.get(way, NO_RECORD)
        return record.seconds if target.quantity == "time" else record.peak_mb

    ours = cost(OURS)
    aims = {"pyg": target.documented} | dict.fromkeys(BEST_OF, target.best)
    for way, aim in aims.items():
        if way == "pyg-csr-sparse" and way not in ways:
            continue  # where features are dense there is no such way
        what, aimed = f"{target.quantity} of {WAYS[way]} / ours", f"≥ {aim:g}"
        theirs = cost(way)
        if ours is None or theirs is None:
            why = ways.get(OURS, NO_RECORD).left_out or ways.get(way, NO_RECORD).left_out
            yield _missing(target.case, case, what, aimed, why)
        else:
            ratio = theirs / ours
            name = _case_name(target.case, case)
            yield name, what, aimed, f"{ratio:.2f}", _met(ratio >= aim)


def _scale_row(case: CaseRecord | None) -> Row:
    points = case.points if case is not None else ()
    ours = [(point, point.ways.get(OURS, NO_RECORD)) for point in points]
    inside = [(p, r) for p, r in ours if p.edges >= FLAT_FROM and r.times]
    costs = [nanoseconds_per_edge(point, record) for point, record in inside]
    aim, what = f"≤ {FLAT_WITHIN:g}", "most / least time per edge, {} to {} edges"
    if len(costs) < 2:
        return _missing("scale", case, what.format(_power(FLAT_FROM), _power(FLAT_TO)), aim)
    first, last = inside[0][0].edges, inside[-1][0].edges
    ratio = max(costs) / min(costs)
    return (
        _case_name("scale", case),
        what.format(_power(first), _power(last)),
        aim,
        f"{ratio:.2f}",
        _met(ratio <= FLAT_WITHIN) if last >= FLAT_TO else "not measured to the end",
    )


def _depth_row(case: CaseRecord | None) -> Row:
    records = {
        (point.layers, way): record
        for point in (case.points if case is not None else ())
        for way, record in point.ways.items()
    }
    deep = records.get((DEEP, "checkpoint"), NO_RECORD)
    shallow = records.get((SHALLOW, OURS), NO_RECORD)
    what = f'memory of {DEEP} layers with "checkpoint" / {SHALLOW} with "full"'
    if deep.peak_mb is None or shallow.peak_mb is None:
        return _missing("depth", case, what, "≤ 1", deep.left_out or shallow.left_out)
    ratio = deep.peak_mb / shallow.peak_mb
    return _case_name("depth", case), what, "≤ 1", f"{ratio:.2f}", _met(ratio <= 1)


def _large_rows(case: CaseRecord | None) -> Iterator[Row]:
    points = [p for p in case.points if p.edges >= LARGE_EDGES] if case is not None else []
    for way in CASES["large"].ways:
        what = f"peak memory with {_power(LARGE_EDGES)} edges, {WAYS[way]}"
        aim = f"≤ {LARGE_LIMIT_MB} MB"
        record = points[0].ways.get(way, NO_RECORD) if points else NO_RECORD
        if record.peak_mb is None:
            yield _missing("large", case, what, aim, record.left_out)
        else:
            met = _met(record.peak_mb <= LARGE_LIMIT_MB)
            yield _case_name("large", case), what, aim, f"{record.peak_mb:.0f} MB", met


def _missing(name: str, case: CaseRecord | None, what: str, aim: str, why: str = "") -> Row:
    measured = f"{NOT_MEASURED}: {why}" if why else NOT_MEASURED
    return _case_name(name, case), what, aim, measured, NOTHING


def _case_name(name: str, case: CaseRecord | None) -> str:
    return f"{name} (quick)" if case is not None and case.quick else name


def _power(edges: int) -> str:
    return f"{edges:.0e}".replace("e+0", "·10^")


def _met(met: bool) -> str:
    return "yes" if met else "no"
