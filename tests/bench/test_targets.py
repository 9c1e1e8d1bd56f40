import pytest

from adgn.bench.cases import TARGETS
from adgn.bench.records import WayRecord
from adgn.bench.targets import target_rows

FLAT = "most / least time per edge, 1·10^6 to 4·10^7 edges"
DEPTH = 'memory of 1000 layers with "checkpoint" / 100 with "full"'
LARGE = "peak memory with 6·10^7 edges, adgn"


def rows_of(**cases):
    """The rows of one case by what they are about."""
    (name,) = cases
    rows = [row for row in target_rows(cases) if row[0].startswith(name)]
    return {row[1]: row[2:] for row in rows}


def test_ratios_stand_beside_their_targets(make_case, make_point):
    ways = {
        "adgn": (0.5, 500.0),
        "pyg": (6.5, 1400.0),
        "pyg-csr": (2.0, 1200.0),
        "pyg-csr-sparse": (3.0, 900.0),
    }
    rows = rows_of(physics=make_case(make_point(ways)))
    assert rows["time of PyG as documented / ours"] == ("≥ 12", "13.00", "yes")
    assert rows["time of PyG, prebuilt CSR adjacency / ours"] == ("≥ 5", "4.00", "no")
    sparse = "PyG, prebuilt CSR adjacency, CSR features / ours"
    assert rows[f"time of {sparse}"] == ("≥ 5", "6.00", "yes")
    assert rows["memory of PyG as documented / ours"] == ("≥ 3", "2.80", "no")
    assert rows["memory of PyG, prebuilt CSR adjacency / ours"] == ("≥ 2", "2.40", "yes")
    assert rows[f"memory of {sparse}"] == ("≥ 2", "1.80", "no")


def test_every_target_has_its_rows_before_anything_is_measured():
    rows = list(target_rows({}))
    assert {row[3:] for row in rows} == {("not measured", "–")}
    for target in TARGETS:
        aims = [row[2] for row in rows if row[0] == target.case and target.quantity in row[1]]
        # Compiled ways have no memory of their own: the compiler's would count.
        best = 3 if target.quantity == "time" else 1
        assert aims == [f"≥ {target.documented:g}", *[f"≥ {target.best:g}"] * best]
    assert [row[:3] for row in rows[-4:]] == [
        ("scale", FLAT, "≤ 2"),
        ("depth", DEPTH, "≤ 1"),
        ("large", LARGE, "≤ 20000 MB"),
        ("large", f'{LARGE}, memory="checkpoint"', "≤ 20000 MB"),
    ]


def test_why_a_way_was_not_measured_is_said(make_case, make_point):
    point = make_point({"adgn": (0.5, 500.0), "pyg-csr": (2.0, 1200.0)})
    ways = point.ways | {"pyg": WayRecord(left_out="no memory")}
    rows = rows_of(physics=make_case(point.model_copy(update={"ways": ways})))
    assert rows["time of PyG as documented / ours"] == ("≥ 12", "not measured: no memory", "–")
    assert rows["memory of PyG, prebuilt CSR adjacency / ours"] == ("≥ 2", "2.40", "yes")


def test_a_quick_case_says_so(make_case, make_point):
    case = make_case(make_point({"adgn": (0.5, 500.0), "pyg": (1.0, 250.0)}), quick=True)
    names = {row[0] for row in target_rows({"texas": case})}
    assert "texas (quick)" in names
    assert "texas" not in names


@pytest.mark.parametrize(
    ("last", "per_edge", "expected"),
    [
        (40_000_000, 0.5, ("≤ 2", "2.50", "no")),
        (40_000_000, 0.3, ("≤ 2", "1.50", "yes")),
        (10_000_000, 0.3, ("≤ 2", "1.50", "not measured to the end")),
    ],
)
def test_time_per_edge(make_case, make_point, last, per_edge, expected):
    points = [
        make_point({"adgn": (0.01, 1100.0)}, edges=10_000),  # in cache, so it does not count
        make_point({"adgn": (0.2, 1100.0)}, edges=1_000_000),
        make_point({"adgn": (per_edge * last / 1e6, 8100.0)}, edges=last),
    ]
    (row,) = rows_of(scale=make_case(*points)).values()
    assert row == expected


def test_time_per_edge_of_small_graphs_says_nothing(make_case, make_point):
    points = [make_point({"adgn": (0.1, 100.0)}, edges=edges) for edges in (10_000, 100_000)]
    assert rows_of(scale=make_case(*points)) == {FLAT: ("≤ 2", "not measured", "–")}
    points = [make_point({"pyg": (0.1, 100.0)}, edges=edges) for edges in (1_000_000, 40_000_000)]
    assert rows_of(scale=make_case(*points)) == {FLAT: ("≤ 2", "not measured", "–")}


@pytest.mark.parametrize(
    ("peak", "expected"),
    [(900.0, ("0.90", "yes")), (1000.0, ("1.00", "yes")), (1100.0, ("1.10", "no"))],
)
def test_depth(make_case, make_point, peak, expected):
    points = [
        make_point({"adgn": (1.0, 1000.0), "checkpoint": (1.5, 400.0)}, layers=100),
        make_point({"checkpoint": (15.0, peak)}, layers=1000),
    ]
    assert rows_of(depth=make_case(*points)) == {DEPTH: ("≤ 1", *expected)}


def test_depth_without_the_deepest_network(make_case, make_point):
    points = [make_point({"adgn": (1.0, 1000.0), "checkpoint": (1.5, 400.0)}, layers=100)]
    assert rows_of(depth=make_case(*points)) == {DEPTH: ("≤ 1", "not measured", "–")}
    deep = make_point({}, layers=1000)
    deep = deep.model_copy(update={"ways": {"checkpoint": WayRecord(left_out="too slow")}})
    expected = ("≤ 1", "not measured: too slow", "–")
    assert rows_of(depth=make_case(*points, deep)) == {DEPTH: expected}


def test_large(make_case, make_point):
    ways = {"adgn": (30.0, 19_000.0), "checkpoint": (45.0, 21_000.0)}
    rows = rows_of(large=make_case(make_point(ways, edges=60_000_000)))
    assert rows[LARGE] == ("≤ 20000 MB", "19000 MB", "yes")
    assert rows[f'{LARGE}, memory="checkpoint"'] == ("≤ 20000 MB", "21000 MB", "no")


def test_a_smaller_graph_is_not_the_large_one(make_case, make_point):
    rows = rows_of(large=make_case(make_point({"adgn": (1.0, 900.0)}, edges=1000)))
    assert {row[1:] for row in rows.values()} == {("not measured", "–")}
