import pytest

from adgn.selection import StudyFolder, select, study_status
from adgn.selection.status import ranked
from tests.selection.studies import Nowhere


def test_counts_and_best(tiny):
    with pytest.raises(StopIteration):
        select(**{**tiny, "executor": Nowhere()})
    before = study_status(*StudyFolder("tiny", tiny["folder"]).open())
    assert (before.total, before.waiting, before.done, before.best) == (4, 4, 0, None)
    assert not before.finished
    result = select(**tiny)
    study, definition = StudyFolder("tiny", tiny["folder"]).open()
    after = study_status(study, definition)
    assert (after.total, after.waiting, after.done, after.finished) == (4, 0, 4, True)
    assert after.best == result.validation["log10_mse"].mean
    assert after.best_params == result.settings
    assert after.seconds is not None
    assert after.seconds > 0


def test_the_best_come_first(tiny):
    select(**tiny)
    study, definition = StudyFolder("tiny", tiny["folder"]).open()
    scores = [trial.value for trial in ranked(study.get_trials(), definition)]
    assert scores == sorted(scores)
    assert len(scores) == 4
