"""What was aimed at, beside what was measured."""

from collections.abc import Iterator, Mapping

from adgn.bench.cases import CASES, LARGEST_EDGES, TARGETS, Target
from adgn.bench.records import CaseRecord, PointRecord, WayRecord
from adgn.bench.workloads import COMPILED, WAYS

OURS = "adgn"
BEST_OF = ("pyg-csr", "pyg-csr-sparse", *COMPILED)
LARGE_EDGES, LARGE_LIMIT_MB = 60_000_000, 20_000
FLAT_FROM, FLAT_TO, FLAT_WITHIN = 1_000_000, LARGEST_EDGES, 2.0
DEEP, SHALLOW = 1000, 100
NOTHING = "–"
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


def power_of_ten(edges: int) -> str:
    """A round number of edges, such as `6·10^7`."""
    return f"{edges:.0e}".replace("e+0", "·10^")


def _row(
    *about: str,
    case: CaseRecord | None,
    limit: tuple[str, float],
    value: float | None,
    why: str = "",
    unit: str = "",
) -> Row:
    """The row of a target: name of the case and what is measured, the limit, and what was found."""
    (name, what), (sign, aim) = about, limit
    if case is not None and case.quick:
        name += " (quick)"
    aimed = f"{sign} {aim:g}{unit}"
    if value is None:
        return name, what, aimed, f"not measured: {why}" if why else "not measured", NOTHING
    met = value >= aim if sign == "≥" else value <= aim
    measured = f"{value:.0f}{unit}" if unit else f"{value:.2f}"
    return name, what, aimed, measured, "yes" if met else "no"


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
        if way in COMPILED and target.quantity == "memory":
            continue  # the compiler's own memory would count
        theirs = cost(way)
        ratio = None if ours is None or theirs is None else theirs / ours
        why = ways.get(OURS, NO_RECORD).left_out or ways.get(way, NO_RECORD).left_out
        what = f"{target.quantity} of {WAYS[way]} / ours"
        yield _row(target.case, what, case=case, limit=("≥", aim), value=ratio, why=why)


def _scale_row(case: CaseRecord | None) -> Row:
    points = [point for point in (case.points if case else ()) if point.edges >= FLAT_FROM]
    ours = {point.edges: (point, point.ways.get(OURS, NO_RECORD)) for point in points}
    costs = {edges: nanoseconds_per_edge(*both) for edges, both in ours.items() if both[1].times}
    first, last, ratio = FLAT_FROM, FLAT_TO, None
    if len(costs) > 1:
        first, last = min(costs), max(costs)
        ratio = max(costs.values()) / min(costs.values())
    what = f"most / least time per edge, {power_of_ten(first)} to {power_of_ten(last)} edges"
    row = _row("scale", what, case=case, limit=("≤", FLAT_WITHIN), value=ratio)
    return row if last >= FLAT_TO else (*row[:4], "not measured to the end")


def _depth_row(case: CaseRecord | None) -> Row:
    ways = {point.layers: point.ways for point in (case.points if case else ())}
    deep = ways.get(DEEP, {}).get("checkpoint", NO_RECORD)
    shallow = ways.get(SHALLOW, {}).get(OURS, NO_RECORD)
    what = f'memory of {DEEP} layers with "checkpoint" / {SHALLOW} with "full"'
    ratio = deep.peak_mb / shallow.peak_mb if deep.peak_mb and shallow.peak_mb else None
    why = deep.left_out or shallow.left_out
    return _row("depth", what, case=case, limit=("≤", 1), value=ratio, why=why)


def _large_rows(case: CaseRecord | None) -> Iterator[Row]:
    points = [point for point in (case.points if case else ()) if point.edges >= LARGE_EDGES]
    for way in CASES["large"].ways:
        record = points[0].ways.get(way, NO_RECORD) if points else NO_RECORD
        what = f"peak memory with {power_of_ten(LARGE_EDGES)} edges, {WAYS[way]}"
        limit, why = ("≤", LARGE_LIMIT_MB), record.left_out
        yield _row("large", what, case=case, limit=limit, value=record.peak_mb, why=why, unit=" MB")
