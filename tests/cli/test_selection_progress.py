import io
from dataclasses import replace

import pytest
from rich.console import Console

from adgn.cli import console as shown_on
from adgn.cli.selection_progress import cost_lines, show_study, time_left
from adgn.selection import StudyStatus
from adgn.selection.forecast import Forecast
from adgn.selection.halving import Rung
from adgn.selection.status import RungStatus

STATUS = StudyStatus(
    total=10,
    complete=0,
    pruned=0,
    failed=0,
    running=2,
    waiting=8,
    best=None,
    best_params={},
    seconds=None,
)


def test_time_left_goes_by_the_pace_since_the_start():
    first = replace(STATUS, complete=4)
    assert time_left(first, first, 100.0) is None
    assert time_left(replace(first, complete=5, pruned=1), first, 100.0) == 4 * 50.0


@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_shown(monkeypatch, terminal):
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120)
    monkeypatch.setattr(shown_on, "error_console", lambda: console)
    done = replace(
        STATUS, complete=9, pruned=1, running=0, waiting=0, best=-1.25, best_params={"lr": 0.1}
    )
    with show_study("mine") as (callback, _):
        callback(STATUS)
        callback(done)
        callback(done)
    text = out.getvalue()
    assert "mine" in text
    assert "-1.2500" in text
    if terminal:
        assert "best: lr=0.1" in text
        assert "time left" in text
    else:
        assert text.count("10 of 10 trials done, 0 running, 1 pruned, 0 failed") == 1


def test_rungs_are_shown_as_they_fill(monkeypatch):
    out = io.StringIO()
    console = Console(file=out, width=200)
    monkeypatch.setattr("adgn.cli.console.error_console", lambda: console)
    rungs = (RungStatus(50, 1, 9, 9, 0, 450), RungStatus(450, 3, 3, 1, 1, 3900))
    with show_study("mine") as (callback, _):
        callback(replace(STATUS, rungs=rungs))
    assert "; 50 epochs 9/9, 450 epochs × 3 1/3" in out.getvalue()


def test_time_left_with_rungs_goes_by_epochs():
    rungs = (RungStatus(50, 1, 9, 9, 0, 450), RungStatus(450, 1, 3, 1, 0, 1200))
    now = replace(STATUS, rungs=rungs)
    first = replace(STATUS, rungs=(replace(rungs[0], done=0), replace(rungs[1], done=0)))
    assert now.work == (850.0, 1650)
    assert time_left(now, first, 85.0) == pytest.approx(80.0)


def test_the_cost_in_words():
    cost = Forecast(
        configurations=27,
        space=192,
        rungs=(Rung(epochs=50), Rung(epochs=450, runs=4, share=3)),
        counts=(27, 9),
        epochs=(1350, 15750),
        seconds_per_epoch=0.2,
        slowest=0.8,
        workers=2,
        limit=3.0,
    )
    assert cost_lines(cost) == [
        "in 3 h: 27 of 192 configurations, drawn at random",
        "rungs: 27 to 50 epochs, 9 to 450 epochs, 4 runs",
        "cost: 17,100 epochs of 0.2 s (measured), 28.5 min with 2 workers, 1.8 h if the largest go "
        "on; early stopping makes it less",
    ]
    unknown = replace(cost, seconds_per_epoch=None, slowest=None)
    assert cost_lines(unknown)[-1] == (
        "cost: 17,100 epochs, hours unknown: configurations that were timed diverged in the first "
        "epoch"
    )
