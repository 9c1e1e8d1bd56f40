import pytest

from adgn.bench.records import CaseRecord, Machine, PointRecord, WayRecord


@pytest.fixture
def make_case():
    def make(*points, quick=False):
        return CaseRecord(
            date="2020-01-02 03:04 UTC",
            commit="abc1234",
            machine=Machine(
                processor="some processor",
                cores=2,
                memory_gb=16.0,
                system="Linux x86_64",
                instruction_set="avx2",
            ),
            versions={"torch": "2.6"},
            backend="native",
            threads=2,
            load_average=0.25,
            repeats=3,
            quick=quick,
            imports_mb=100.0,
            points=points,
        )

    return make


@pytest.fixture
def make_point():
    def make(ways, *, layers=10, edges=1000):
        """`ways`: name → (seconds, peak MB)."""
        records = {
            way: WayRecord(
                times=(seconds,), processor_times=(2 * seconds,), losses=(1.0, 0.9), peak_mb=peak
            )
            for way, (seconds, peak) in ways.items()
        }
        return PointRecord(
            data="random",
            layers=layers,
            hidden=64,
            phi="gcn",
            nodes=edges // 25,
            edges=edges,
            features=32,
            ways=records,
        )

    return make
