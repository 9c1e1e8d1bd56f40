"""A results directory: where everything of a reproduction lies."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from adgn._util.names import check_name
from adgn._version import __version__
from adgn.experiments.errors import ReproductionError
from adgn.experiments.plan import CellPlan
from adgn.experiments.records import (
    FORMAT,
    Cell,
    Head,
    Moments,
    Outline,
    read_record,
    write_record,
)
from adgn.training.files import RUN_AGAIN, write_atomically

__all__ = ["Outdated", "ResultsDirectory"]

Outdated = Callable[[Cell], bool]


class ResultsDirectory:
    """The files of a reproduction.

    reproduction.json                  which budget and experiments are here
    EXPERIMENT/experiment.json         what the table is
    EXPERIMENT/cells/ROW--COLUMN.json  what was measured, a small file per cell
    EXPERIMENT/work/ROW--COLUMN/       studies and runs of a cell, and the fingerprint of its plan
    EXPERIMENT/outdated/               cells and work of other definitions, moved aside

    Args:
        path: The directory; it need not exist yet.
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
        """Makes the directory, or checks that it is one of this budget and version.

        Raises:
            ReproductionError: It is something else, or cannot be written.
        """
        if self.path.exists() and not self.path.is_dir():
            raise ReproductionError(f"--out={self.path} is a file; choose a folder")
        if self.head_file.exists():
            found = self._read_head().budget
            if found != budget:
                raise ReproductionError(
                    f"{self.path} holds results of the budget {found!r}, not {budget!r}; "
                    "choose another --out"
                )
        elif self._has_something():
            raise ReproductionError(
                f"{self.path} is not empty and has no reproduction.json; choose a new or empty "
                "--out"
            )
        else:
            self._write_head(budget, ())

    def _has_something(self) -> bool:
        try:
            return any(self.path.iterdir())
        except FileNotFoundError:
            return False
        except OSError as error:
            raise ReproductionError(
                f"--out={self.path} cannot be read: {error.strerror or error}; choose another"
            ) from error

    def add_experiments(self, budget: str, names: Iterable[str]) -> None:
        """Names experiments in reproduction.json; their files must be there already."""
        known = self._read_head().experiments
        self._write_head(budget, (*known, *(name for name in names if name not in known)))

    def _write_head(self, budget: str, experiments: tuple[str, ...]) -> None:
        head = Head(format=FORMAT, adgn=__version__, budget=budget, experiments=experiments)
        write_record(self.head_file, head)

    def _read_head(self) -> Head:
        return read_record(self.head_file, Head, ReproductionError)

    def begin(self, plan: CellPlan, outdated: Outdated | None = None) -> tuple[Cell, Path | None]:
        """The cell as it is so far, and where results of another definition were moved, if any.

        Args:
            plan: The plan of the cell.
            outdated: Told a cell of the same definition; says whether it does not serve all the
                same.
        """
        cell = self._read_cell(plan)
        moved = None
        if cell is not None and (
            cell.fingerprint != plan.fingerprint or (outdated is not None and outdated(cell))
        ):
            moved = self._move_aside(plan, str(cell.fingerprint))
            cell = None
        elif self.work_folder(plan).exists() and self._work_of(plan) != plan.fingerprint:
            # Work of another definition: runs in it must not be taken for the cell's own.
            moved = self._move_aside(plan, self._work_of(plan) or "unknown", cell_too=cell is None)
        if cell is None:
            cell = plan.new_cell()
            self.write_cell(plan, cell)
        elif cell.published != (published := plan.published()):
            # Not measured, and so no reason to measure again: but it may have been corrected.
            cell = cell.model_copy(update={"published": published})
            self.write_cell(plan, cell)
        return cell, moved

    def move_unknown(self, experiment: str, known: Collection[str]) -> list[Path]:
        """Moves cells aside that the experiment no longer has; gives the folders they are in now.

        Args:
            experiment: The experiment's name.
            known: The names of its cells.
        """
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

    def _move_aside(self, plan: CellPlan, fingerprint: str, *, cell_too: bool = True) -> Path:
        return self._move(plan.experiment.name, plan.name, fingerprint, cell_too=cell_too)

    def _move(self, experiment: str, name: str, fingerprint: str, *, cell_too: bool = True) -> Path:
        folder = self.path / experiment
        try:
            mark = check_name(fingerprint[:12])
        except ValueError:  # a file had it, which anybody may have written
            mark = "unknown"
        target = folder / "outdated" / f"{name}-{mark}"
        number = 1
        while target.exists():
            number += 1
            target = folder / "outdated" / f"{name}-{mark}-{number}"
        work, cell = folder / "work" / name, folder / "cells" / f"{name}.json"
        try:
            target.mkdir(parents=True)
            # The work first: where this is cut short, the cell's file still says what is to be
            # done.
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

    def rows_there(self, experiment: str) -> set[str]:
        """Keys of rows that have cells."""
        cells = self.path / experiment / "cells"
        return {file.name.partition("--")[0] for file in cells.glob("*--*.json")}

    def constant_there(self, experiment: str) -> dict[str, Moments]:
        """The constant predictor in columns that were measured in earlier calls."""
        file = self.path / experiment / "experiment.json"
        return read_record(file, Outline, ReproductionError).constant if file.exists() else {}
