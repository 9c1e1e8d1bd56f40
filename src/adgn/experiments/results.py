"""A results directory: where everything of a reproduction lies."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from adgn._util.names import check_name
from adgn._version import __version__
from adgn.experiments.errors import ReproductionError
from adgn.experiments.plan import CellPlan
from adgn.experiments.records import FORMAT, Cell, Head, Moments, Outline, read_record, write_record
from adgn.training.checkpoint import RUN_AGAIN, write_atomically


class ResultsDirectory:
    """The files of a reproduction.

    reproduction.json                  which budget and experiments are here
    EXPERIMENT/experiment.json         what the table is
    EXPERIMENT/cells/ROW--COLUMN.json  what was measured, a small file per cell
    EXPERIMENT/work/ROW--COLUMN/       studies and runs of a cell, and the fingerprint of its plan
    EXPERIMENT/outdated/               cells and work of other definitions, moved aside
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.head_file = self.path / "reproduction.json"

    def cell_file(self, plan: CellPlan) -> Path:
        """The file of a cell."""
        return self.path / plan.experiment.name / "cells" / f"{plan.name}.json"

    def work_folder(self, plan: CellPlan) -> Path:
        """The folder of a cell's studies and runs."""
        return self.path / plan.experiment.name / "work" / plan.name

    def cell(self, plan: CellPlan) -> Cell | None:
        """What was measured for a cell; `None` where that is nothing, or of another definition."""
        cell = self._read_cell(plan)
        return cell if cell is not None and cell.fingerprint == plan.fingerprint else None

    def _read_cell(self, plan: CellPlan) -> Cell | None:
        file = self.cell_file(plan)
        return read_record(file, Cell, ReproductionError) if file.exists() else None

    def write_cell(self, plan: CellPlan, cell: Cell) -> None:
        """Writes what was measured for a cell."""
        write_record(self.cell_file(plan), cell)

    def open(self, budget: str) -> None:
        """Makes the directory, or checks that it is one of this budget and version."""
        if self.path.exists() and not self.path.is_dir():
            raise ReproductionError(f"--out={self.path} is a file; choose a folder")
        if not self.head_file.exists():
            self._check_empty()
            self._write_head(budget, ())
        elif (found := self._read_head().budget) != budget:
            raise ReproductionError(
                f"{self.path} holds results of the budget {found!r}, not {budget!r}; choose "
                "another --out"
            )

    def _check_empty(self) -> None:
        try:
            empty = not self.path.exists() or not any(self.path.iterdir())
        except OSError as error:
            raise ReproductionError(
                f"--out={self.path} cannot be read: {error.strerror or error}; choose another"
            ) from error
        if not empty:
            raise ReproductionError(
                f"{self.path} is not empty and has no reproduction.json; choose a new or empty "
                "--out"
            )

    def add_experiments(self, budget: str, names: Iterable[str]) -> None:
        """Names experiments in reproduction.json; their files must be there already."""
        self._write_head(budget, tuple(dict.fromkeys((*self._read_head().experiments, *names))))

    def _write_head(self, budget: str, experiments: tuple[str, ...]) -> None:
        head = Head(format=FORMAT, adgn=__version__, budget=budget, experiments=experiments)
        write_record(self.head_file, head)

    def _read_head(self) -> Head:
        return read_record(self.head_file, Head, ReproductionError)

    def begin(self, plan: CellPlan, *, source_searches: bool = False) -> tuple[Cell, Path | None]:
        """The cell as it is so far, and where results of another definition were moved, if any.

        `source_searches` says that the cell whose settings it takes over is about to search.
        """
        cell, moved = self._read_cell(plan), None
        if cell is not None and (
            cell.fingerprint != plan.fingerprint
            or self.settings_outdated(plan, cell, source_searches=source_searches)
        ):
            moved = self._move(plan.experiment.name, plan.name, str(cell.fingerprint))
            cell = None
        elif self.work_folder(plan).exists() and self._work_of(plan) != plan.fingerprint:
            # Work of another definition: runs in it must not be taken for the cell's own.
            mark = self._work_of(plan) or "unknown"
            moved = self._move(plan.experiment.name, plan.name, mark, cell_too=cell is None)
        published = plan.published()
        if cell is None:
            cell = plan.new_cell()
            self.write_cell(plan, cell)
        elif cell.published != published:
            # Not measured, and so no reason to measure again: but it may have been corrected.
            cell = cell.model_copy(update={"published": published})
            self.write_cell(plan, cell)
        return cell, moved

    def taken_over_settings(self, plan: CellPlan) -> tuple[dict[str, Any], str]:
        """The settings of a cell without a search, and in words where they come from."""
        source = plan.settings_source
        if source is None:
            return {}, "no search: the settings of the budget"
        cell, where = self.cell(source), source.experiment.name
        if cell is None or not cell.settings:
            return {}, f"no search, and nothing selected in {where}: the protocol's defaults"
        how = f"no search: as selected in {where} ({plan.row.key}, {source.column.key})"
        return plan.taken_over(cell), how

    def settings_outdated(self, plan: CellPlan, cell: Cell, *, source_searches: bool) -> bool:
        """Whether a cell was measured with other settings than it would take over now."""
        if plan.settings_source is None or cell.search is None:
            return False
        return source_searches or cell.settings != self.taken_over_settings(plan)[0]

    def move_unknown(self, experiment: str, known: Collection[str]) -> list[Path]:
        """Moves cells aside whose names the experiment no longer has; gives their new folders."""
        files = sorted((self.path / experiment / "cells").glob("*--*.json"))
        unknown = [file.stem for file in files if file.stem not in known]
        return [self._move(experiment, name, "unknown") for name in unknown]

    def claim_work(self, plan: CellPlan) -> Path:
        """The folder of a cell's studies and runs, made and marked as belonging to its plan."""
        folder = self.work_folder(plan)
        if self._work_of(plan) != plan.fingerprint:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / "fingerprint", f"{plan.fingerprint}\n".encode(), RUN_AGAIN)
        return folder

    def _work_of(self, plan: CellPlan) -> str | None:
        try:
            return (self.work_folder(plan) / "fingerprint").read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None

    def _move(self, experiment: str, name: str, fingerprint: str, *, cell_too: bool = True) -> Path:
        folder = self.path / experiment
        try:
            mark = check_name(fingerprint[:12])
        except ValueError:  # a file had it, which anybody may have written
            mark = "unknown"
        target, number = folder / "outdated" / f"{name}-{mark}", 1
        while target.exists():
            number += 1
            target = target.with_name(f"{name}-{mark}-{number}")
        work, cell = folder / "work" / name, folder / "cells" / f"{name}.json"
        try:
            target.mkdir(parents=True)
            # The work first: where this is cut short, the cell's file still says what to do.
            if work.exists():
                work.rename(target / "work")
            if cell_too and cell.exists():
                cell.rename(target / "cell.json")
        except OSError as error:
            raise ReproductionError(
                f"cannot move {name} of {folder} to {target}: {error.strerror or error}; restore "
                "access, or choose another --out"
            ) from error
        return target

    def write_outline(self, outline: Outline) -> None:
        """Writes what the table of an experiment is."""
        write_record(self.path / outline.name / "experiment.json", outline)

    def recorded_rows(self, experiment: str) -> set[str]:
        """Keys of rows that have cells."""
        cells = self.path / experiment / "cells"
        return {file.name.partition("--")[0] for file in cells.glob("*--*.json")}

    def recorded_columns(self, experiment: str) -> set[str]:
        """Keys of columns that have cells."""
        cells = self.path / experiment / "cells"
        return {file.stem.partition("--")[2] for file in cells.glob("*--*.json")}

    def recorded_constant(self, experiment: str) -> dict[str, Moments]:
        """The constant predictor in columns that were measured in earlier calls."""
        file = self.path / experiment / "experiment.json"
        return read_record(file, Outline, ReproductionError).constant if file.exists() else {}
