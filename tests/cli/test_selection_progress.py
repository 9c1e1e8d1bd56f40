import io
from dataclasses import replace

import pytest
from rich.console import Console

from adgn.cli import progress
from adgn.cli.selection_progress import show_study, time_left
from adgn.selection import StudyStatus

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
    monkeypatch.setattr(progress, "error_console", lambda: console)
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
