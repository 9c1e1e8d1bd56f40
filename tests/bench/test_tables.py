import pytest

from adgn.bench.records import BenchFile, WayRecord
from adgn.bench.tables import tables


def rows_of(case, name):
    return {row[1]: row[2:] for row in tables(BenchFile(cases={name: case}))[0].rows}


def test_ratios_stand_beside_their_targets(make_case, make_point):
    ways = {
        "adgn": (0.5, 500.0),
        "pyg": (6.5, 1400.0),
        "pyg-csr": (2.0, 1200.0),
        "pyg-csr-sparse": (3.0, 900.0),
    }
    rows = rows_of(make_case(make_point(ways)), "physics")
    assert rows["time of PyG as documented / ours"] == ("≥ 12", "13.00", "yes")
    assert rows["time of PyG, prebuilt CSR adjacency / ours"] == ("≥ 5", "4.00", "no")
    sparse = "PyG, prebuilt CSR adjacency, CSR features / ours"
    assert rows[f"time of {sparse}"] == ("≥ 5", "6.00", "yes")
    assert rows["memory of PyG as documented / ours"] == ("≥ 3", "2.80", "no")
    assert rows["memory of PyG, prebuilt CSR adjacency / ours"] == ("≥ 2", "2.40", "yes")
    assert rows[f"memory of {sparse}"] == ("≥ 2", "1.80", "no")


def test_a_case_without_a_target_is_shown_too(make_case, make_point):
    case = make_case(make_point({"adgn": (0.5, 500.0), "pyg": (1.0, 250.0)}), quick=True)
    (table,) = tables(BenchFile(cases={"pubmed": case}))
    assert table.title.startswith("pubmed: ")
    assert table.rows[1] == ("PyG as documented", "1", "1 – 1", "2.00", "2", "2.00", "250", "0.50")
    for part in (
        "Quick run",
        "abc1234",
        "some processor",
        "avx2",
        "load average 0.25",
        "torch 2.6",
    ):
        assert part in table.note


@pytest.mark.parametrize(
    ("last", "expected"),
    [(40_000_000, "no"), (10_000_000, "not measured to the end")],
)
def test_time_per_edge(make_case, make_point, last, expected):
    points = [
        make_point({"adgn": (0.2, 1100.0)}, edges=1_000_000),
        make_point({"adgn": (0.5 * last / 1e6, 8100.0)}, edges=last),
    ]
    targets, table = tables(BenchFile(cases={"scale": make_case(*points)}))
    assert targets.rows[0][2:] == ("≤ 2", "2.50", expected)
    # 0.2 s for 10 layers of 10⁶ edges; 1000 MB above the imports.
    assert table.rows[0] == (
        *("1·10^6", "40000", "adgn"),
        *("0.2", "20.00", "1.00", "1100", "1000"),
    )


def test_what_was_left_out_is_said(make_case, make_point):
    points = [make_point({"adgn": (1.0, 200.0)}, edges=edges) for edges in (1000, 10_000)]
    ways = points[1].ways | {"pyg": WayRecord(left_out="a step would take about 300 s")}
    points[1] = points[1].model_copy(update={"ways": ways})
    (table,) = tables(BenchFile(cases={"scale": make_case(*points)}))
    assert table.rows[-1][2:4] == ("PyG as documented", "a step would take about 300 s")


def test_depth(make_case, make_point):
    points = [
        make_point({"adgn": (1.0, 1000.0), "checkpoint": (1.5, 400.0)}, layers=100),
        make_point({"checkpoint": (15.0, 900.0)}, layers=1000),
    ]
    targets, table = tables(BenchFile(cases={"depth": make_case(*points)}))
    assert targets.rows[0][2:] == ("≤ 1", "0.90", "yes")
    assert table.rows[0] == ("100", "1", "10.00", "1000", "1.5", "15.00", "400")
    assert table.rows[1] == ("1000", "–", "–", "–", "15", "15.00", "900")


def test_large(make_case, make_point):
    rows = rows_of(make_case(make_point({"checkpoint": (15.0, 21_000.0)})), "large")
    assert rows['peak memory, adgn, memory="checkpoint"'] == ("≤ 20000 MB", "21000 MB", "no")


def test_no_results_no_tables():
    assert tables(BenchFile()) == []
