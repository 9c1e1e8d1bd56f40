import pytest

from adgn.bench import run
from adgn.bench.cases import Case
from adgn.bench.run import BenchError, Options, run_case
from adgn.bench.worker import WorkerError
from adgn.bench.workloads import Workload

SMALL, MIDDLE, BIG = (Workload("random", 2, 4, "gcn", size) for size in (1000, 10_000, 100_000))


@pytest.fixture
def answers(monkeypatch):
    """Stands in for the processes: costs grow with the edges, as given per way."""
    costs = {"adgn": (0.001, 0.1), "pyg": (0.01, 1.0)}  # seconds and MB per edge
    losses = {"adgn": [1.0, 0.5], "pyg": [1.0, 0.5]}
    failures = {}

    def answer(job):
        edges = job.workload.size
        found = {
            "sizes": {"nodes": edges // 25, "edges": edges, "features": 32},
            "imports_mb": 100.0,
            "warnings": ["take care"],
        }
        if job.kind == "memory":
            if job.ways[0] in failures:
                raise WorkerError(failures[job.ways[0]])
            return found | {"peak_mb": 100.0 + costs[job.ways[0]][1] * edges}
        ways = {
            way: {"times": [costs[way][0] * edges] * job.repeats, "losses": losses[way]}
            for way in job.ways
        }
        return found | {
            "ways": ways,
            "backend": "torch",
            "instruction_set": "",
            "threads": 1,
        }

    monkeypatch.setattr(run, "run_alone", answer)
    monkeypatch.setattr(run, "available_megabytes", lambda: 20_000.0)
    case = Case("small to big", (SMALL, MIDDLE, BIG), (SMALL,), ways=("adgn", "pyg"))
    monkeypatch.setattr(run, "CASES", {"some": case})
    return costs, losses, failures


def test_another_data_set_is_not_left_out_for_the_one_before(answers, monkeypatch):
    other = Workload("property", 2, 4, "gcn", 10_000)
    case = Case("two data sets", (SMALL, other), (SMALL,), ways=("adgn", "pyg"))
    monkeypatch.setattr(run, "CASES", {"some": case})
    record = run_case("some", Options(repeats=1, slowest=5.0, slowest_rival=5.0))
    assert [point.ways["pyg"].left_out for point in record.points] == ["", ""]


def test_every_workload_by_every_way(answers):
    lines = []
    record = run_case(
        "some", Options(repeats=2, slowest=1e9, slowest_rival=1e9, max_edges=10_000), lines.append
    )
    assert [point.edges for point in record.points] == [1000, 10_000]
    assert record.points[0].ways["pyg"].times == (10.0, 10.0)
    assert record.points[0].ways["pyg"].peak_mb == 1100
    assert record.repeats == 2
    assert not record.quick
    assert lines[0] == "some: time of random, 2 layers, size 1000 by adgn, pyg"
    assert lines.count("some: warning: take care") == 1


def test_a_way_that_would_take_too_long_is_left_out(answers):
    record = run_case("some", Options(slowest=99.0, slowest_rival=99.0, max_edges=10_000))
    assert [bool(point.ways["pyg"].times) for point in record.points] == [True, False]
    assert record.points[1].ways["pyg"].left_out == "a step would take about 100 s"
    assert record.points[1].ways["adgn"].seconds == 10.0


def test_a_way_that_was_left_out_stays_out_at_larger_sizes(answers):
    record = run_case("some", Options(slowest=1e9, slowest_rival=99.0))
    assert record.points[2].ways["pyg"].left_out == "left out, as at a smaller size"
    assert record.points[2].ways["adgn"].times


def test_rivals_are_left_out_earlier_than_the_first_way(answers):
    record = run_case("some", Options(slowest=11.0, slowest_rival=9.0, max_edges=10_000))
    assert record.points[1].ways["pyg"].left_out == "a step would take about 100 s"
    assert record.points[1].ways["adgn"].seconds == 10.0


def test_a_way_that_would_need_too_much_memory_is_left_out(answers):
    record = run_case("some", Options(slowest=1e9, slowest_rival=1e9))
    assert [bool(point.ways["pyg"].times) for point in record.points] == [True, True, False]
    expected = "needs about 100.0 GB of memory, 20.0 GB are available"
    assert record.points[2].ways["pyg"].left_out == expected
    assert record.not_measured == ""


def test_a_first_workload_that_needs_too_much_memory(answers, monkeypatch):
    case = Case("big", (BIG,), (BIG,), ways=("adgn",), needs_mb={"adgn": 30_000})
    monkeypatch.setattr(run, "CASES", {"some": case})
    with pytest.raises(BenchError, match=r"adgn: needs about 30.0 GB of memory"):
        run_case("some", Options())


def test_a_quick_run_measures_memory_where_that_is_asked(answers, monkeypatch):
    record = run_case("some", Options(quick=True))
    assert [point.edges for point in record.points] == [1000]
    assert record.quick
    assert record.repeats == 2
    assert record.points[0].ways["adgn"].peak_mb is None
    case = Case("s", (SMALL,), (SMALL,), ways=("adgn",), quick_memory=True)
    monkeypatch.setattr(run, "CASES", {"some": case})
    assert run_case("some", Options(quick=True)).points[0].ways["adgn"].peak_mb == 200


def test_times_are_kept_where_memory_could_not_be_measured(answers):
    answers[2]["pyg"] = "killed"
    record = run_case("some", Options(max_edges=1000))
    assert record.points[0].ways["pyg"].seconds == 10.0
    assert record.points[0].ways["pyg"].peak_mb is None
    assert record.points[0].ways["pyg"].left_out == "memory: killed"


@pytest.mark.parametrize("theirs", [[1.0, 0.51], [1.01, 0.5], [float("nan"), 0.5]])
def test_ways_that_do_not_agree_are_an_error(answers, theirs):
    answers[1]["pyg"] = theirs
    with pytest.raises(BenchError, match="they do not compute the same"):
        run_case("some", Options())


def test_what_was_measured_is_kept_where_nothing_larger_can_be(answers):
    lines = []
    record = run_case("some", Options(slowest=9.0, slowest_rival=9.0), lines.append)
    assert [point.edges for point in record.points] == [1000]
    assert record.not_measured.startswith("random, 2 layers, size 10000 and what follows: adgn: ")
    assert lines[-1] == f"some: not measured: {record.not_measured}"


def test_nothing_left_to_measure(answers):
    with pytest.raises(BenchError, match="max_edges=10 leaves nothing to measure"):
        run_case("some", Options(max_edges=10))


def test_the_machine_is_described():
    described = run.describe_machine("avx2")
    assert described.processor
    assert described.cores >= 1
    assert described.instruction_set == "avx2"
    if described.memory_gb:
        assert 0 < run.available_megabytes() < 1e3 * described.memory_gb


def test_versions_of_what_takes_part():
    assert {"adgn", "torch", "torch_geometric", "python"} <= set(run.measured_versions())


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        (None, "unknown"),
        (("0123456789", False), "0123456"),
        (("0123456789", True), "0123456 with changes"),
    ],
)
def test_the_commit_tells_of_changes(monkeypatch, found, shown):
    monkeypatch.setattr(run, "git_commit", lambda: found)
    assert run.measured_commit() == shown
