import torch

from adgn.experiments.transfer import TransferOutcome
from adgn.report.transfer import TRANSFER_COLUMNS, transfer_figure, transfer_rows


def outcome(model: str, distance: int, error: float) -> TransferOutcome:
    return TransferOutcome(
        model=model,
        distance=distance,
        num_layers=2 * distance,
        error=error,
        validation=error,
        constant=0.33,
        gradient=torch.linspace(1, 2, 2 * distance),
        epochs=1,
        seconds=1.0,
    )


OUTCOMES = [
    outcome("adgn", 5, 1e-4),
    outcome("gcn", 5, 0.02),
    outcome("adgn", 9, 1e-3),
    outcome("gcn", 9, 0.33),
]


def test_rows_say_what_was_measured():
    rows = transfer_rows(OUTCOMES)
    assert all(len(row) == len(TRANSFER_COLUMNS) for row in rows)
    assert rows[0] == ["A-DGN", "5", "10", "0.0001", "0.33", "yes", "0.5"]
    assert [row[5] for row in rows] == ["yes", "yes", "yes", "no"]


def test_the_figure_shows_errors_and_the_gradients_of_the_deepest():
    error, gradient = transfer_figure(OUTCOMES).axes
    adgn, gcn, constant = error.lines
    assert list(adgn.get_xdata()) == [5, 9]
    assert list(gcn.get_ydata()) == [0.02, 0.33]
    assert list(constant.get_ydata()) == [0.33, 0.33]
    assert [len(line.get_ydata()) for line in gradient.lines] == [18, 18]
    assert error.get_yscale() == gradient.get_yscale() == "log"
