import pytest
import torch

from adgn.estimators.members import greedy_weights
from adgn.training.quality import Quality


def logits(right, rows=4000, seed=0):
    """Logits that are right in a share of rows, and their classes."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(rows) % 2
    hit = torch.rand(rows, generator=generator) < right
    answer = torch.where(hit, y, 1 - y)
    return torch.nn.functional.one_hot(answer, 2).float(), y


def test_independent_models_are_averaged_and_useless_ones_left_out():
    outputs, y = [], None
    for seed, right in enumerate((0.8, 0.8, 0.8, 0.5)):
        output, y = logits(right, seed=seed)
        outputs.append(output)
    weights = greedy_weights(outputs, y, Quality("accuracy", 2))
    assert sum(weights) == pytest.approx(1)
    assert all(weight > 0.2 for weight in weights[:3])
    assert weights[3] < 0.1


def test_few_rows_spread_the_weight_over_models_that_are_alike():
    first, y = logits(0.8, rows=50, seed=1)
    weights = greedy_weights([first, first * 1.01], y, Quality("accuracy", 2))
    assert min(weights) >= 100 / 150 / 2 - 1e-9


def test_values_are_averaged_where_errors_cancel():
    y = torch.zeros(2000, 1)
    outputs = [torch.ones(2000, 1), -torch.ones(2000, 1), 10 * torch.ones(2000, 1)]
    assert greedy_weights(outputs, y, Quality("r2")) == [0.5, 0.5, 0.0]
