"""Runs and studies as the tables of a report, those of a plugin's task and model included."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from adgn._util.files import parse_json
from adgn._version import __version__
from adgn.experiments import records
from adgn.experiments.condense import mean_scores, search_record, thinned
from adgn.nn import model_spec
from adgn.report.results import ReportError, Results, TableResults, find_reproduction, not_begun
from adgn.selection import Run, protocol_of
from adgn.selection.replicate import run_record
from adgn.training import RunDirectory, TrainConfig, read_config, resolve_config, to_toml

BUDGET = records.Budget(name="as trained")
ACCURACY = records.Metric(name="accuracy", title="test accuracy", higher_is_better=True, unit="%")
ERROR = records.Metric(
    name="log10_mse", title="log10 of the test mean squared error", higher_is_better=False
)
Place = tuple[str, str]  # a name, and what tells it apart from others of that name


@dataclass(frozen=True)
class _Trained:
    """A finished run; `study` is the selection.json that it is a part of, else empty.

    `search` is what that file says of the search.
    """

    run: Run
    config: TrainConfig
    scores: Mapping[str, Mapping[str, Any]]
    result: Mapping[str, Any]
    directory: RunDirectory
    study: Mapping[str, Any]
    search: records.SearchRecord | None = None

    @cached_property
    def row(self) -> Place:
        """The model, and its settings that are not the task's defaults."""
        name = self.config.model.name
        if self.study:
            return name, f"study {self.study['study']}"
        usual = resolve_config({"task": self.config.task.model_dump(), "model": {"name": name}})
        return name, _differences(self.config, usual, of_task=False)

    @cached_property
    def column(self) -> Place:
        """The task, and its settings that are not the defaults."""
        usual = resolve_config({"task": {"name": self.config.task.name}})
        return self.config.task.name, _differences(self.config, usual, of_task=True)


def read_runs(folder: Path) -> Results | None:
    """The finished runs and studies below a folder: a table per kind of task, a row per model.

    Runs that differ in their seed or split alone are one cell. `None` where there are none, or
    where the folder belongs to what `adgn reproduce` wrote. A run that is damaged, or was made with
    a plugin that is not loaded, is a `TrainingError`.

    Example:
        >>> import tempfile
        >>> import adgn
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for seed in (1, 2):
        ...         _ = adgn.train(
        ...             "graph-transfer", task={"distance": 2, "train": 8, "val": 4, "test": 4},
        ...             loop={"max_epochs": 4}, seed=seed, run_dir=f"{folder}/{seed}",
        ...         )
        ...     (table,) = read_runs(Path(folder)).tables
        >>> [len(cell.runs) for cell in table.cells.values()]
        [2]
    """
    if not folder.is_dir() or find_reproduction(folder):
        return None
    studies = sorted(path.parent for path in folder.rglob("selection.json"))
    results = (path.parent for path in sorted(folder.rglob("result.json")))
    own = [path for path in results if not any(path.is_relative_to(study) for study in studies)]
    found = [*map(_read_run, own), *(run for study in studies for run in _read_study(study))]
    tables = (_table("Classification", ACCURACY, found), _table("Regression", ERROR, found))
    shown = tuple(table for table in tables if table.cells)
    return Results(folder, __version__, BUDGET.name, shown) if shown else None


def _read_run(path: Path) -> _Trained:
    directory = RunDirectory(path)
    config, result = directory.config(), directory.result() or {}
    run = Run(config.seed, getattr(config.task, "split", None))
    return _Trained(run, config, result["scores"], result, directory, {})


def _read_study(path: Path) -> Iterator[_Trained]:
    """The final runs of the configuration that a study has selected."""
    try:
        study = parse_json((path / "selection.json").read_text(encoding="utf-8"))
        runs = [
            (Run(r["seed"], r["split"]), r["scores"], path / r["folder"]) for r in study["runs"]
        ]
        search = search_record(study, _how(study))
    except (ValueError, KeyError, TypeError) as error:
        why = f"{path / 'selection.json'} is damaged ({type(error).__name__}: {error}); remove it"
        raise ReportError(f"{why} and give the command `adgn select --study` again") from error
    for run, scores, folder in runs:
        directory = RunDirectory(folder)
        with directory.missing_plugins_named():
            config = resolve_config(read_config(path / "selected.toml"))
        yield _Trained(run, config, scores, directory.result() or {}, directory, study, search)


def _differences(config: TrainConfig, usual: TrainConfig, *, of_task: bool) -> str:
    """The settings of the task, or all others, in which a configuration is not the usual one."""
    flat, other = (
        {
            f"{section}.{key}": value
            for section, values in each.model_dump(exclude={"checkpoint", "seed", "device"}).items()
            for key, value in values.items()
            if (section, key) not in (("task", "split"), ("task", "root"))
        }
        for each in (config, usual)
    )
    told = [key for key in flat if key.startswith("task.") == of_task]
    return ", ".join(f"{key}={flat[key]}" for key in told if flat[key] != other.get(key))


def _table(title: str, metric: records.Metric, trained: Sequence[_Trained]) -> TableResults:
    groups: dict[tuple[Place, Place], dict[Run, _Trained]] = {}
    for each in trained:
        if metric.name in each.scores.get("test", {}):  # trials of a study have no test score
            groups.setdefault((each.row, each.column), {})[each.run] = each
    rows, columns = (_keys(places[k] for places in groups) for k in (0, 1))
    constant: dict[str, records.Moments] = {}
    for (_, column), runs in groups.items():
        found = [run.result.get("constant_predictor", {}).get(metric.name) for run in runs.values()]
        values = [value for value in found if value is not None]
        if values:
            constant[columns[column]] = records.Moments(mean=sum(values) / len(values))
    outline = records.Outline(
        format=records.FORMAT,
        name=title.lower(),
        title=title,
        kind="scores",
        budget=BUDGET,
        metric=metric,
        rows=tuple(
            records.Row(key=key, title=model_spec(name).title + (more and f", {more}"), model=name)
            for (name, more), key in rows.items()
        ),
        columns=tuple(
            records.Column(key=key, title=name, task=name, note=more or None)
            for (name, more), key in columns.items()
        ),
        constant=constant,
    )
    cells = {
        (rows[row], columns[column]): _cell(outline, rows[row], columns[column], [*runs.values()])
        for (row, column), runs in groups.items()
    }
    order = [(row.key, column.key) for row in outline.rows for column in outline.columns]
    complete = {place: cells.get(place) or not_begun(outline, *place) for place in order}
    return TableResults(outline, complete)


def _keys(places: Iterable[Place]) -> dict[Place, str]:
    """A key for each place: its name, with a number from the second place of that name on."""
    keys: dict[Place, str] = {}
    for place in dict.fromkeys(places):
        key, number = place[0], 2
        while key in keys.values():
            key, number = f"{place[0]}-{number}", number + 1
        keys[place] = key
    return keys


def _cell(
    outline: records.Outline, row: str, column: str, runs: Sequence[_Trained]
) -> records.Cell:
    first, metric = runs[0], outline.metric.name
    result, study = first.result, first.study
    splits = [split for split in ("train", "val", "test") if all(split in r.scores for r in runs)]
    scores = {split: _moments([(r, r.scores[split]) for r in runs]) for split in splits}
    speeds = [(r, {"seconds": r.result["seconds_per_epoch"]}) for r in runs if r.result]
    published = (study or result)["published"] or {}
    file = first.directory.result_file
    made = datetime.fromtimestamp(file.stat().st_mtime, timezone.utc) if file.exists() else None
    return records.Cell(
        format=records.FORMAT,
        experiment=outline.name,
        row=row,
        column=column,
        budget=BUDGET.name,
        status="done",
        planned_runs=len(runs),
        runs=tuple(records.RunRecord(**run_record(r.run, r.scores, r.result)) for r in runs),
        train=scores.get("train", {}),
        validation=scores.get("val", {}),
        test=scores["test"],
        score=scores["test"][metric],
        published=records.Published(**published) if published.get("metric") == metric else None,
        search=first.search,
        settings=study.get("settings", {}),
        settings_by_split=study.get("settings_by_split", {}),
        config=to_toml(first.config),
        curve=_curve(first.directory.history()),
        seconds_per_epoch=_moments(speeds)["seconds"] if speeds else None,
        parameters=result.get("parameters", {}).get("total"),
        notes=tuple(result.get("notes", ())),
        date=made.date().isoformat() if made else None,
        environment=(study or result)["environment"],
    )


def _moments(by_run: Sequence[tuple[_Trained, Mapping[str, Any]]]) -> dict[str, records.Moments]:
    """Mean and deviation of each score, by the rule of the task."""
    protocol = protocol_of(by_run[0][0].config)
    return mean_scores(protocol, {trained.run: values for trained, values in by_run})


def _how(study: Mapping[str, Any]) -> str:
    return f"{study['search']}, space {study['space']}, {study['rule']}"


def _curve(history: Sequence[Mapping[str, Any]]) -> records.Curve:
    """The losses by epoch, thinned out."""
    lines = thinned([line for line in history if "val" in line])
    epochs, train = (tuple(line[key] for line in lines) for key in ("epoch", "train_loss"))
    val = tuple(line["val"]["loss"] for line in lines)
    return records.Curve(metric="loss", epochs=epochs, train=train, val=val)
