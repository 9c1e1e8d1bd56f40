import pytest

from adgn.training import EarlyStopping


def epochs_until_stop(stopping, scores):
    for epoch, score in enumerate(scores, start=1):
        stopping.update(epoch, score)
        if stopping.reason(epoch):
            return epoch
    return None


def test_stops_when_the_best_epoch_is_more_than_patience_ago():
    assert epochs_until_stop(EarlyStopping("max", patience=2), [1, 3, 2, 2, 2, 2, 2]) == 5


@pytest.mark.parametrize(("ties", "best", "stop"), [(True, 5, None), (False, 1, 4)])
def test_ties_count_as_better_if_asked_for(ties, best, stop):
    stopping = EarlyStopping("max", patience=2, ties=ties)
    assert epochs_until_stop(stopping, [1.0] * 5) == stop
    if stop is None:
        assert stopping.best_epoch == best


def test_target_stops_at_once():
    stopping = EarlyStopping("max", patience=9, target=1.0)
    assert epochs_until_stop(stopping, [0.5, 0.99, 1.0, 1.0]) == 3
    assert stopping.reason(3) == "target"
    assert epochs_until_stop(EarlyStopping("min", target=-2.0), [0.0, -2.5]) == 2


def test_no_patience_never_stops():
    assert epochs_until_stop(EarlyStopping("min"), [1.0] + [2.0] * 500) is None


def test_state_goes_on():
    first, second = EarlyStopping("min", 3), EarlyStopping("min", 3)
    first.update(1, 0.5)
    second.load_state_dict(first.state_dict())
    assert not second.update(2, 0.6)
    assert second.best == 0.5


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match=r"mode='mn' is not known. Did you mean 'min'"):
        EarlyStopping("mn")
    with pytest.raises(ValueError, match="patience=-1"):
        EarlyStopping("min", patience=-1)
    with pytest.raises(ValueError, match="NaN"):
        EarlyStopping("min").update(1, float("nan"))
