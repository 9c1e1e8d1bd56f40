from adgn.bench.records import BenchFile, WayRecord
from adgn.bench.tables import tables
from adgn.bench.targets import target_rows


def test_a_case_is_shown_with_where_it_was_measured(make_case, make_point):
    case = make_case(make_point({"adgn": (0.5, 500.0), "pyg": (1.0, 250.0)}), quick=True)
    _, table = tables(BenchFile(cases={"pubmed": case}))
    assert table.title.startswith("pubmed: ")
    assert table.rows[1] == (
        *("PyG as documented", "1", "1 – 1", "2.00", "2", "2.00", "250", "0.50"),
        "–",  # the first step, which this record does not have
    )
    for part in (
        "Quick run",
        "abc1234",
        "some processor",
        "avx2",
        "load average 0.25",
        "torch 2.6",
    ):
        assert part in table.note


def test_sizes(make_case, make_point):
    points = [make_point({"adgn": (0.2, 1100.0)}, edges=edges) for edges in (1_000_000, 10_000_000)]
    _, table = tables(BenchFile(cases={"scale": make_case(*points)}))
    # 0.2 s for 10 layers of 10⁶ edges; 1000 MB above the imports.
    assert table.rows[0] == (
        *("1·10^6", "40000", "adgn"),
        *("0.2", "20.00", "1.00", "1100", "1000"),
    )


def test_predictions_are_shown_as_rates(make_case, make_point):
    ways = {"adgn": (0.002, 300.0), "pyg": (0.5, 400.0)}
    point = make_point(ways, edges=1_000_000).model_copy(update={"predict": True, "graphs": 512})
    left_out = {"pyg-compiled": WayRecord(left_out="too slow")}
    other = point.model_copy(update={"data": "texas", "ways": point.ways | left_out})
    _, table = tables(BenchFile(cases={"prediction": make_case(point, other)}))
    assert table.rows[:2] == (
        ("random", "adgn", "0.002", "1.00", "256,000", "20,000,000", "300", "–"),
        ("random", "PyG as documented", "0.5", "250.00", "1,020", "80,000", "400", "–"),
    )
    assert table.rows[-1][0] == "texas"
    assert table.rows[-1][2:] == ("too slow", *["–"] * 5)
    assert len(table.rows) == 5
    assert {len(row) for row in table.rows} == {len(table.head)}


def test_what_was_left_out_is_said(make_case, make_point):
    points = [make_point({"adgn": (1.0, 200.0)}, edges=edges) for edges in (1000, 10_000)]
    ways = points[1].ways | {"pyg": WayRecord(left_out="a step would take about 300 s")}
    points[1] = points[1].model_copy(update={"ways": ways})
    _, table = tables(BenchFile(cases={"scale": make_case(*points)}))
    assert table.rows[-1][2:4] == ("PyG as documented", "a step would take about 300 s")


def test_depth(make_case, make_point):
    points = [
        make_point({"adgn": (1.0, 1000.0), "checkpoint": (1.5, 400.0)}, layers=100),
        make_point({"checkpoint": (15.0, 900.0)}, layers=1000),
    ]
    _, table = tables(BenchFile(cases={"depth": make_case(*points)}))
    assert table.rows[0] == ("100", "1", "10.00", "1000", "1.5", "15.00", "400")
    assert table.rows[1] == ("1000", "–", "–", "–", "15", "15.00", "900")


def test_some_cases_are_shown_with_the_targets_of_all(make_case, make_point):
    case = make_case(make_point({"adgn": (0.5, 500.0), "pyg": (1.0, 250.0)}))
    results = BenchFile(cases={"texas": case, "physics": case})
    targets, table = tables(results, ["texas"])
    assert table.title.startswith("texas: ")
    assert targets.rows == tuple(target_rows(results.cases))


def test_nothing_to_show_no_tables(make_case, make_point):
    assert tables(BenchFile()) == []
    case = make_case(make_point({"adgn": (0.5, 500.0)}))
    assert tables(BenchFile(cases={"texas": case}), []) == []
