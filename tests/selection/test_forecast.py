import time

import pytest

from adgn.selection import SelectionError, select
from adgn.selection.forecast import EpochTimes, configurations_in, forecast, measure_epochs
from adgn.training import Trainer
from tests.selection.studies import Nowhere, planned
from tests.selection.test_study import definition as study_definition

TIMES = EpochTimes((1, 3), (2, 4), ((1.0, 2.0), (3.0, 6.0)))
SPACE = {
    "optimizer.lr": [0.1 / (number + 1) for number in range(20)],
    "model.num_layers": [1, 2, 3],
    "model.hidden_channels": [2, 4],
}


def about(**changes):
    settings = study_definition().base.model_dump(mode="json")
    settings["loop"]["max_epochs"] = 90
    return study_definition(space=SPACE, settings=settings, **changes)


def halving():
    rungs = [
        {"epochs": 5},
        {"epochs": 45, "share": 3},
        {"epochs": 90, "share": 27},
        {"epochs": 90, "runs": 2, "share": 81},
    ]
    return about(prune="halving", rungs=rungs)


def test_times_between_those_that_were_measured():
    assert TIMES.of(1, 2) == 1.0
    assert TIMES.of(3, 4) == 6.0
    assert TIMES.of(2, 3) == 3.0
    assert EpochTimes((4,), (8,), ((0.5,),)).of(4, 8) == 0.5


def test_what_a_search_costs():
    cost = forecast(halving(), TIMES, workers=2)
    assert cost.configurations == cost.space == 120
    assert cost.counts == (120, 40, 5, 3)
    assert cost.epochs == (120 * 5, 40 * 40, 5 * 45, 3 * 90)
    assert cost.seconds_per_epoch == pytest.approx((1 + 2 + 3 + 2 + 4 + 6) / 6)
    assert cost.slowest == 6.0
    assert cost.hours == pytest.approx(sum(cost.epochs) * 3.0 / 2 / 3600)
    later = 40 * 40 + 5 * 45 + 3 * 90
    assert cost.most_hours == pytest.approx((600 * 3.0 + later * 6.0) / 2 / 3600)


def test_other_searches_cost_all_their_runs():
    assert forecast(about(), TIMES, 1).epochs == (120 * 2 * 90,)
    assert forecast(about(prune="asha"), TIMES, 1).counts == (120, 40)
    assert forecast(about(prune="asha"), TIMES, 1).epochs == (120 * 90, 40 * 90)
    assert forecast(about(search="random", trials=7), TIMES, 1).configurations == 7


def test_as_many_configurations_as_hours_allow():
    whole = forecast(halving(), TIMES, 1).hours
    assert configurations_in(whole, halving(), TIMES, 1) == 120
    count = configurations_in(whole / 2, halving(), TIMES, 1)
    assert 1 < count < 120
    assert forecast(halving(), TIMES, 1, configurations=count).hours <= whole / 2
    assert forecast(halving(), TIMES, 1, configurations=count + 1).hours > whole / 2
    assert configurations_in(whole / 2, halving(), TIMES, 2) == 120
    for hours in (1e-6, 0.0, -1.0, float("nan")):
        with pytest.raises(SelectionError, match="is not enough for one configuration"):
            configurations_in(hours, halving(), TIMES, 1)


def test_the_cost_is_measured_once_and_told(tiny, monkeypatch):
    told = []
    tiny |= {"prune": "halving", "tell_cost": told.append}
    study, _ = planned(tiny)
    times = study.user_attrs["adgn_epoch_times"]
    assert times["units"] == [2, 4]
    assert all(seconds > 0 for row in times["seconds"] for seconds in row)

    def never(definition):
        raise AssertionError("it was measured again")

    monkeypatch.setattr("adgn.selection.api.measure_epochs", never)
    planned(tiny)
    assert told[0] == told[1]
    assert told[0].counts == (4, 3, 3)


def test_hours_choose_a_part_of_the_space(tiny, monkeypatch):
    monkeypatch.setattr("adgn.selection.api.measure_epochs", lambda definition: TIMES)
    told = []
    tiny |= {"prune": "halving", "space": SPACE, "hours": 0.05, "tell_cost": told.append}
    study, definition = planned(tiny)
    (cost,) = told
    assert 3 < cost.configurations < cost.space == 120
    assert cost.hours <= 0.05
    assert definition.search == "random"
    assert len(study.get_trials()) == definition.trials == cost.configurations
    # The same command goes on with them; more hours add to them.
    assert len(planned(tiny)[0].get_trials()) == cost.configurations
    more, _ = planned({**tiny, "hours": 0.06})
    assert len(more.get_trials()) > cost.configurations
    with pytest.raises(SelectionError, match="leave one of them out"):
        select(**{**tiny, "search": "grid", "executor": Nowhere()})


def test_one_that_diverges_at_once_is_not_quick(tiny):
    """Its time is taken from another of its size; where all diverge, it is not known."""
    told = []
    settings = {**tiny["settings"], "optimizer": {"name": "sgd"}}
    tiny |= {"prune": "halving", "settings": settings, "tell_cost": told.append}
    study, _ = planned({**tiny, "space": {"optimizer.lr": [1e30, 1e-9]}})
    ((seconds,),) = study.user_attrs["adgn_epoch_times"]["seconds"]
    assert told[0].seconds_per_epoch == told[0].slowest == seconds > 0
    hopeless = {**tiny, "space": {"optimizer.lr": [1e30, 1e31]}, "study": "hopeless"}
    planned({**hopeless, "folder": tiny["folder"] / "hopeless"})
    assert told[1].hours is told[1].most_hours is told[1].seconds_per_epoch is None
    with pytest.raises(SelectionError, match=r"diverge in the first one; give trials= "):
        select(**{**hopeless, "hours": 1.0, "folder": tiny["folder"] / "hours"})


def test_a_time_that_is_missing_is_not_nothing():
    times = EpochTimes((1, 3), (2, 4), ((1.0, 2.0), (3.0, None)))
    assert times.of(1, 4) is None
    assert forecast(halving(), times, 1).hours is None


def test_all_of_the_first_epoch_counts_where_there_is_no_other(tiny, monkeypatch):
    """A full batch is one step, and most of the epoch."""
    monkeypatch.setattr("adgn.selection.forecast._TIMED_EPOCHS", 1)
    tiny["settings"]["loop"]["batch_size"] = 12
    _, definition = planned({**tiny, "space": {"optimizer.lr": [0.1]}})
    seen = []

    class Slow(Trainer):
        def _backward(self, batch):
            seen.append(time.sleep(0.3))
            return super()._backward(batch)

    monkeypatch.setattr("adgn.training.preparation.Trainer", Slow)
    ((seconds,),) = measure_epochs(definition).seconds
    assert len(seen) == 1
    assert seconds > 0.3
