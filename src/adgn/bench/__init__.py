"""Speed and memory of the layers against PyG's, measured in one run."""

from adgn.bench.cases import CASES, TARGETS, Case, Target, choose_cases
from adgn.bench.records import (
    BenchFile,
    CaseRecord,
    PointRecord,
    WayRecord,
    check_replaceable,
    read,
    store,
)
from adgn.bench.run import BenchError, Options, run_case
from adgn.bench.tables import Table, tables
from adgn.bench.workloads import WAYS, Workload

__all__ = [
    "CASES",
    "TARGETS",
    "WAYS",
    "BenchError",
    "BenchFile",
    "Case",
    "CaseRecord",
    "Options",
    "PointRecord",
    "Table",
    "Target",
    "WayRecord",
    "Workload",
    "check_replaceable",
    "choose_cases",
    "read",
    "run_case",
    "store",
    "tables",
]
