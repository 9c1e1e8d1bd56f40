import pytest

from adgn.selection import ExecutorError
from adgn.selection.executors.base import check_workers, threads_per_worker


@pytest.mark.parametrize(
    ("workers", "cores", "threads"), [(1, 8, 8), (3, 8, 2), (8, 8, 1), (9, 8, 1)]
)
def test_workers_together_use_no_more_than_the_cores(workers, cores, threads):
    assert threads_per_worker(workers, cores) == threads


def test_at_least_one_worker():
    with pytest.raises(ExecutorError, match="workers=0"):
        check_workers(0)
