import json

import pytest

from adgn.bench.records import BenchFile, WayRecord, read, store


def test_what_is_stored_is_read_back(tmp_path, make_case, make_point):
    path = tmp_path / "results" / "bench.json"
    case = make_case(make_point({"adgn": (0.5, 200.0), "pyg": (2.0, 800.0)}))
    written = store(path, "physics", case)
    assert read(path) == written == BenchFile(cases={"physics": case})
    content = json.loads(path.read_text())
    assert content["format"] == 1
    stored = content["cases"]["physics"]
    assert stored["machine"]["instruction_set"] == "avx2"
    assert stored["commit"] == "abc1234"
    assert stored["load_average"] == 0.25
    assert stored["points"][0]["ways"]["pyg"]["times"] == [2.0]


def test_cases_are_added_and_replaced(tmp_path, make_case, make_point):
    path = tmp_path / "bench.json"
    first, second = (make_case(make_point({"adgn": (s, 200.0)})) for s in (1.0, 2.0))
    store(path, "physics", first)
    store(path, "texas", first)
    after = store(path, "physics", second)
    assert after.cases == {"physics": second, "texas": first}
    assert [entry.name for entry in tmp_path.iterdir()] == ["bench.json"]


def test_no_file_has_no_cases(tmp_path):
    assert read(tmp_path / "none.json") == BenchFile()


@pytest.mark.parametrize("content", ["{", '{"format": 2}', '{"format": 1, "other": 3}'])
def test_another_file_is_refused(tmp_path, content, make_case, make_point):
    path = tmp_path / "bench.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="is not a file of benchmark results"):
        store(path, "physics", make_case(make_point({"adgn": (1.0, 2.0)})))
    assert path.read_text() == content


def test_the_time_is_the_median():
    assert WayRecord(times=(5.0, 1.0, 2.0)).seconds == 2.0
    assert WayRecord().seconds is None


def test_quick_measurements_never_replace_full_ones(tmp_path, make_case, make_point):
    path = tmp_path / "bench.json"
    point = make_point({"adgn": (1.0, 200.0)})
    full, quick = make_case(point), make_case(point, quick=True)
    store(path, "physics", full)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"full measurements of physics.*another --out"):
        store(path, "physics", quick)
    assert path.read_bytes() == before
    store(path, "texas", quick)
    after = store(path, "texas", full)
    assert after.cases == {"physics": full, "texas": full}
