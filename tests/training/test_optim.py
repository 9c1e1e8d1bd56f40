import pytest
import torch
from torch import nn

from adgn.training.config import OptimizerConfig, ScheduleConfig
from adgn.training.optim import build_optimizer, build_schedule, step_schedule


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
