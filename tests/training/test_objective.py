import pytest
import torch
from torch import nn

from adgn.training import OBJECTIVES, EarlyStopping, LabelledBatch
from adgn.training.config import OptimizerConfig, ScheduleConfig
from adgn.training.objective import (
    build_optimizer,
    build_schedule,
    resolve_objective,
    step_schedule,
)


def batch(y, weight=None):
    return LabelledBatch(x=y, graph=y, y=y, size=len(y), weight=weight)


def test_regression_loss_is_the_mean_over_graphs_of_the_mean_over_nodes():
    y, output = torch.zeros(3, 1), torch.tensor([[1.0], [3.0], [2.0]])
    weight = torch.tensor([0.25, 0.25, 0.5])  # graphs of two and of one node
    loss = OBJECTIVES["regression"].loss(output, batch(y, weight))
    assert float(loss) == pytest.approx(((1 + 9) / 2 + 4) / 2)


def test_loss_with_equal_shares_is_the_plain_mean():
    output, y = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    plain = OBJECTIVES["classification"].loss(output, batch(y))
    shares = OBJECTIVES["classification"].loss(output, batch(y, torch.full((6,), 1 / 6)))
    torch.testing.assert_close(plain, shares)


@pytest.mark.parametrize(
    ("output", "y"),
    [((4, 1), (4,)), ((4,), (4, 1)), ((2, 3), (6,)), ((4, 2), (4, 2))],
)
def test_targets_with_a_value_for_each_output_are_brought_into_its_shape(output, y):
    values = torch.randn(y)
    scored, known = OBJECTIVES["regression"].known(torch.zeros(output), batch(values))
    assert scored.shape == known.y.shape == output
    assert known.y.flatten().equal(values.flatten())


@pytest.mark.parametrize(("output", "y"), [((4, 1), (1, 4)), ((4, 1), (3,)), ((2, 4), (4, 2))])
def test_shapes_that_do_not_fit_are_refused(output, y):
    with pytest.raises(
        ValueError, match=r"output has shape .*, but the targets .*regression needs"
    ):
        OBJECTIVES["regression"].known(torch.zeros(output), batch(torch.zeros(y)))


def test_an_integer_target_of_minus_one_is_a_value_in_regression():
    _, known = OBJECTIVES["regression"].known(torch.zeros(3, 1), batch(torch.tensor([-1, 0, 2])))
    assert known.y.view(-1).tolist() == [-1, 0, 2]


def test_rows_of_an_unknown_class_are_left_out():
    output = torch.arange(8.0).view(4, 2)
    scored, known = OBJECTIVES["classification"].known(output, batch(torch.tensor([0, -1, 1, -1])))
    assert scored.tolist() == output[[0, 2]].tolist()
    assert (known.y.tolist(), known.size) == ([0, 1], 2)


def test_classes_that_the_model_has_no_output_for_are_refused():
    known = OBJECTIVES["classification"].known
    with pytest.raises(ValueError, match="from 0 to 5, but the model has 3 outputs"):
        known(torch.zeros(2, 3), batch(torch.tensor([0, 5])))
    with pytest.raises(ValueError, match=r"from -2 to 0, .* \(and -1 for an unknown class\)"):
        known(torch.zeros(2, 3), batch(torch.tensor([0, -2])))
    with pytest.raises(ValueError, match="int64 targets"):
        known(torch.zeros(2, 3), batch(torch.zeros(2)))


def test_unknown_objective():
    with pytest.raises(ValueError, match=r"objective='regresion' is not known. Did you mean"):
        resolve_objective("regresion")


@pytest.mark.parametrize(
    ("config", "reference"),
    [
        ({"name": "adam", "weight_decay": 0.1}, torch.optim.Adam),
        ({"name": "adamw", "weight_decay": 0.1}, torch.optim.AdamW),
        ({"name": "sgd", "momentum": 0.9}, torch.optim.SGD),
        ({"name": "rmsprop", "momentum": 0.5}, torch.optim.RMSprop),
    ],
)
def test_steps_are_those_of_torch(config, reference):
    ours, theirs = nn.Linear(3, 2), nn.Linear(3, 2)
    theirs.load_state_dict(ours.state_dict())
    options = {key: value for key, value in config.items() if key != "name"}
    optimizers = (
        build_optimizer(ours.parameters(), OptimizerConfig(lr=0.1, **config)),
        reference(theirs.parameters(), lr=0.1, **options),
    )
    for _ in range(3):
        for layer, optimizer in zip((ours, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            layer(torch.ones(1, 3)).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(ours.weight, theirs.weight)


def test_frozen_parameters_are_left_out():
    layer = nn.Linear(3, 2)
    layer.bias.requires_grad_(False)
    (group,) = build_optimizer(layer.parameters(), OptimizerConfig()).param_groups
    assert len(group["params"]) == 1
    layer.weight.requires_grad_(False)
    with pytest.raises(ValueError, match="no parameters to train"):
        build_optimizer(layer.parameters(), OptimizerConfig())


def rates(config, scores, mode="max", epochs=10):
    optimizer = build_optimizer(nn.Linear(1, 1).parameters(), OptimizerConfig(name="sgd", lr=1.0))
    schedule = build_schedule(optimizer, ScheduleConfig(**config), mode=mode, max_epochs=epochs)
    found = []
    for score in scores:
        optimizer.step()
        if schedule is not None:
            step_schedule(schedule, score)
        found.append(optimizer.param_groups[0]["lr"])
    return found


def test_plateau_halves_the_rate_after_patience_by_an_absolute_threshold():
    config = {"name": "plateau", "factor": 0.5, "patience": 1, "threshold": 0.1}
    assert rates(config, [1.0, 1.05, 1.09, 1.2, 1.2]) == [1.0, 1.0, 0.5, 0.5, 0.5]


def test_plateau_waits_for_a_score():
    assert rates({"name": "plateau", "patience": 0}, [1.0, None, None]) == [1.0, 1.0, 1.0]


def test_step_cosine_and_none():
    assert rates({"name": "step", "every": 2, "factor": 0.1}, [0] * 4) == pytest.approx(
        [1.0, 0.1, 0.1, 0.01]
    )
    cosine = rates({"name": "cosine", "min_lr": 0.2}, [0] * 4, epochs=4)
    assert cosine == pytest.approx([0.8828427, 0.6, 0.3171573, 0.2])
    assert rates({"name": "none"}, [0] * 3) == [1.0] * 3


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


def test_parameters_without_decay_are_a_group_of_their_own():
    layer = nn.Linear(2, 1)
    for name in ("adam", "adamw", "sgd", "rmsprop"):
        config = OptimizerConfig(name=name, weight_decay=0.5)
        optimizer = build_optimizer(layer.parameters(), config, [layer.bias])
        decayed, rest = optimizer.param_groups
        assert (decayed["weight_decay"], rest["weight_decay"]) == (0.5, 0.0)
        assert decayed["params"] == [layer.weight]
        assert rest["params"] == [layer.bias]
        assert decayed["lr"] == rest["lr"] == config.lr
    (group,) = build_optimizer(
        layer.parameters(), config, [nn.Parameter(torch.ones(1))]
    ).param_groups
    assert len(group["params"]) == 2  # one that is not trained here changes nothing
    layer.bias.requires_grad_(False)
    (group,) = build_optimizer(layer.parameters(), config, [layer.bias]).param_groups
    assert len(group["params"]) == 1
