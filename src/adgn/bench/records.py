"""What a benchmark found, as it is kept in `results/bench.json`."""

import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from adgn.training.checkpoint import OTHER_OUT, write_atomically


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WayRecord(_Record):
    """One way to do one workload."""

    times: tuple[float, ...] = ()  # seconds per training step, one entry per turn
    processor_times: tuple[float, ...] = ()  # of all threads, for the same turns
    losses: tuple[float, ...] = ()  # of the first two steps
    first_seconds: float | None = None  # of the first step, which prepares and compiles
    peak_mb: float | None = None  # resident memory of a process that does nothing else
    left_out: str = ""  # why something was not measured

    @property
    def seconds(self) -> float | None:
        """The median time of a training step."""
        return statistics.median(self.times) if self.times else None

    @property
    def processor_seconds(self) -> float | None:
        """The median processor time of a training step."""
        return statistics.median(self.processor_times) if self.processor_times else None


class PointRecord(_Record):
    """One workload by several ways."""

    data: str
    layers: int
    hidden: int
    phi: str
    predict: bool = False  # times are those of predictions, not of training steps
    nodes: int
    edges: int
    features: int
    graphs: int = 1
    ways: dict[str, WayRecord]


class Machine(_Record):
    """Where it was measured."""

    processor: str
    cores: int
    memory_gb: float
    system: str
    instruction_set: str


class CaseRecord(_Record):
    """One case: its workloads, and where, when and how they were measured."""

    date: str
    commit: str
    machine: Machine
    versions: dict[str, str]
    backend: str
    threads: int
    load_average: float
    repeats: int
    quick: bool
    imports_mb: float
    points: tuple[PointRecord, ...]
    not_measured: str = ""  # what of the case was not measured, and why


class BenchFile(_Record):
    """All cases, by name."""

    format: Literal[1] = 1
    cases: dict[str, CaseRecord] = {}


def read(path: Path) -> BenchFile:
    """The cases in a file; none where there is no file.

    Example:
        >>> "texas" in read(Path("results/bench.json")).cases  # of this project
        True
        >>> read(Path("nowhere.json")).cases
        {}
    """
    if not path.exists():
        return BenchFile()
    try:
        return BenchFile.model_validate_json(path.read_bytes())
    except (ValidationError, OSError) as error:
        why = f"{path} is not a file of benchmark results: {error}"
        raise ValueError(f"{why}. Give another --out or move it away") from error


def check_replaceable(path: Path, before: BenchFile, names: Iterable[str], *, quick: bool) -> None:
    """Raises where quick cases would take the place of full ones in the file.

    Example:
        >>> path = Path("results/bench.json")  # of this project
        >>> check_replaceable(path, read(path), ["texas"], quick=True)
        Traceback (most recent call last):
        ValueError: ...bench.json has full measurements of texas, which quick ones would ...
    """
    full = [name for name in names if name in before.cases and not before.cases[name].quick]
    if quick and full:
        raise ValueError(
            f"{path} has full measurements of {', '.join(full)}, which quick ones would replace; "
            "give another --out, or measure without --quick"
        )


def store(path: Path, name: str, case: CaseRecord) -> BenchFile:
    """Adds a case to a file, in place of an earlier one of its name; others stay.

    A file of something else, or a full measurement that a quick one would replace, is an error.

    Example:
        >>> import tempfile
        >>> texas = read(Path("results/bench.json")).cases["texas"]  # of this project
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [*store(Path(folder) / "bench.json", "texas", texas).cases]
        ['texas']
    """
    before = read(path)
    check_replaceable(path, before, [name], quick=case.quick)
    after = BenchFile(cases={**before.cases, name: case})
    path.parent.mkdir(parents=True, exist_ok=True)
    content = after.model_dump(mode="json", exclude_defaults=True) | {"format": 1}
    text = json.dumps(content, indent=1)
    write_atomically(path, text.encode() + b"\n", OTHER_OUT)
    return after
