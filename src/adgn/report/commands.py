"""The command that measures what a table has."""

from adgn.experiments.tables import EXPERIMENTS
from adgn.report.results import TableResults


def reproduce_command(table: TableResults) -> str:
    """The call of `adgn reproduce` that makes the measured cells of an experiment.

    Rows and columns that have not begun are left out. Where no cell has all its runs, `--rounds` is
    the largest number of initialisations that a cell has; a cell with fewer was stopped before, and
    the command goes on with it.

    Args:
        table: The experiment with its cells.

    Example:
        >>> from pathlib import Path
        >>> from adgn.report import read_results
        >>> results = read_results(Path("results/reproduction"))  # those of this project
        >>> reproduce_command(results.tables[0])
        'adgn reproduce property --budget laptop --models ...'
    """
    experiment = table.experiment
    cells = [cell for cell in table.cells.values() if cell.status != "waiting"]
    begun = {cell.row for cell in cells}
    rows = [row.key for row in experiment.rows if row.key in begun or not begun]
    words = ["adgn reproduce", experiment.name, f"--budget {experiment.budget.name}"]
    known = EXPERIMENTS.get(experiment.name)
    if known is None or {row.key for row in known.rows} != set(rows):
        words.append(f"--models {','.join(rows)}")
    done = {cell.column for cell in cells}
    if known is not None and cells and {column.key for column in experiment.columns} != done:
        keys = (column.key for column in experiment.columns if column.key in done)
        words.append(f"--columns {','.join(keys)}")
    rounds = max((len({run.seed for run in cell.runs}) for cell in cells), default=0)
    if rounds and all(cell.status != "done" for cell in cells):
        words.append(f"--rounds {rounds}")
    return " ".join(words)
