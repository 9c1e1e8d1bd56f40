"""The files of a results directory: one typed schema, by which they are written and read."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.functional_validators import AfterValidator, BeforeValidator

from adgn._util.files import finite_or_none, parse_json
from adgn._util.names import check_name
from adgn.experiments.errors import unwritable
from adgn.training.checkpoint import RUN_AGAIN, write_atomically

FORMAT = 1
# JSON has no number that is not finite: such a score is written as `None`.
Name = Annotated[str, AfterValidator(check_name)]  # of a folder and of files
Number = Annotated[float | None, BeforeValidator(finite_or_none)]


class _Record(BaseModel):
    # A later writer may add fields; those that are here must have the right type.
    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _null_is_unknown(cls, content: Any) -> Any:
        """A null stands for what is not known: the same as a field that is not there."""
        if not isinstance(content, dict):
            return content
        required = {name for name, field in cls.model_fields.items() if field.is_required()}
        return {k: v for k, v in content.items() if v is not None or k in required}


class Moments(_Record):
    """Mean and standard deviation; `None` where unknown or not finite."""

    mean: Number
    std: Number = None

    @property
    def finite(self) -> bool:
        """Whether there is a mean to show."""
        return self.mean is not None


class Published(Moments):
    """A published number: its row and column in the paper, or in another one (`source`).

    `source` says whose measurement it is; `differences` are sentences about how it was measured in
    another way than the cell beside it.
    """

    row: str | None = None
    column: str | None = None
    source: str | None = None
    differences: tuple[str, ...] = ()


class Failure(_Record):
    """What went wrong with a cell."""

    message: str
    traceback: str | None = None
    run: str | None = None


class RunRecord(_Record):
    """One training run of a cell."""

    seed: int | None = None
    split: int | None = None
    scores: dict[str, dict[str, Number]] = {}
    epochs: int | None = None
    best_epoch: int | None = None
    seconds: float | None = None


class Tried(_Record):
    """A configuration of a search: what sets it apart, its score after each rung, its end."""

    settings: dict[str, Any]
    scores: tuple[Number, ...] = ()
    state: Literal["complete", "pruned", "failed"]


class SearchRecord(_Record):
    """How a cell's settings were found.

    `configurations` are those that were tried, the best first, with their scores by
    `metric` on the split `compared_on`; with halving one after each of `rungs`.
    """

    space: dict[str, Any] = {}
    trials: int | None = None
    failed: int | None = None
    how: str = ""
    seconds: float | None = None
    metric: str | None = None
    compared_on: str | None = None
    rungs: tuple[str, ...] = ()
    configurations: tuple[Tried, ...] = ()


class Curve(_Record):
    """The scores of a cell's first run by epoch; `None` where one is not finite."""

    metric: str
    epochs: tuple[int, ...]
    train: tuple[Number, ...]
    val: tuple[Number, ...]


class Cell(_Record):
    """One row × column of an experiment: what was run and what came out."""

    format: int
    experiment: str
    row: str
    column: str
    budget: str
    status: Literal["done", "partial", "failed", "waiting"]
    error: Failure | None = None
    fingerprint: str | None = None
    planned_runs: int = 0
    runs: tuple[RunRecord, ...] = ()
    train: dict[str, Moments] = {}
    validation: dict[str, Moments] = {}
    test: dict[str, Moments] = {}
    score: Moments | None = None
    published: Published | None = None
    search: SearchRecord | None = None
    settings: dict[str, Any] = {}
    settings_by_split: dict[str, Any] = {}
    config: str | None = None
    curve: Curve | None = None
    seconds_per_epoch: Moments | None = None
    parameters: int | None = None
    notes: tuple[str, ...] = ()
    date: str | None = None
    environment: dict[str, Any] = {}


class Row(_Record):
    """A method of a table; notes are sentences about how it compares with what is published."""

    key: str
    title: str
    model: str | None = None
    notes: tuple[str, ...] = ()


class Column(_Record):
    """A task of a table; in a depth experiment a data set (`group`) at a number of layers.

    In other experiments columns of a group make a table of their own.
    """

    key: str
    title: str
    task: str | None = None
    note: str | None = None
    layers: int | None = None
    group: str | None = None

    @property
    def dataset(self) -> str:
        """What columns share that differ in the number of layers alone."""
        return self.key if self.layers is None or self.group is None else self.group


class Budget(_Record):
    """How much was run."""

    name: str
    text: str = ""


class Metric(_Record):
    """The score of a table. With the unit `"%"` values are shares, shown times 100."""

    name: str
    title: str
    higher_is_better: bool
    unit: Literal["", "%", "s"] = ""


class Quoted(_Record):
    """A published row of a method that the experiment does not run."""

    title: str
    values: dict[str, Moments]
    group: str = ""  # what sets it apart from the methods that are run, in a few words
    notes: tuple[str, ...] = ()


class Planned(_Record):
    """What was known of a cell before anything ran."""

    row: str
    column: str
    planned_runs: int = 0
    published: Published | None = None


class Outline(_Record):
    """experiment.json: what a table is, its rows, columns, score and notes."""

    format: int
    name: Name
    title: str
    summary: str = ""
    kind: Literal["scores", "seconds", "depth"]
    budget: Budget
    metric: Metric
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()
    cells: tuple[Planned, ...] = ()
    constant: dict[str, Moments] = {}
    quoted: tuple[Quoted, ...] = ()


class Head(_Record):
    """reproduction.json: which budget and experiments a results directory has."""

    format: int
    adgn: str | None = None
    budget: str
    experiments: tuple[Name, ...]


_R = TypeVar("_R", Head, Outline, Cell)


def write_record(path: Path, record: BaseModel) -> None:
    """Writes a file, whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path.parent, error) from error
    text = json.dumps(record.model_dump(mode="json"), indent=1, allow_nan=False)
    write_atomically(path, text.encode() + b"\n", RUN_AGAIN)


def read_record(path: Path, kind: type[_R], error_kind: type[Exception]) -> _R:
    """Reads and checks a file; `error_kind` is raised where it is damaged or of another format."""
    remedy = "put the file back, or move it away and run `adgn reproduce` on the directory again"
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise error_kind(f"cannot read {path}: it is not a file; {remedy}")
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise error_kind(f"{path} is damaged ({error}); {remedy}") from error
    except OSError as error:
        raise error_kind(f"cannot read {path}: {error.strerror or error}") from error
    if not isinstance(content, dict) or "format" not in content:
        raise error_kind(f"{path} is not a file of results: it has no 'format'; {remedy}")
    if content["format"] != FORMAT:
        raise error_kind(
            f"{path} has format {content['format']!r}; this version of adgn reads format {FORMAT}. "
            f"Use the version that wrote it ({content.get('adgn') or 'see reproduction.json'}) or "
            "run `adgn reproduce` again into another folder"
        )
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        why = first["msg"].removeprefix("Value error, ")
        raise error_kind(f"{path} is damaged: {place}: {why}; {remedy}") from error
