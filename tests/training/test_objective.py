import pytest
import torch

from adgn.training import OBJECTIVES, LabelledBatch
from adgn.training.objective import resolve_objective


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


def test_shapes_that_torch_would_broadcast_are_refused():
    with pytest.raises(ValueError, match=r"output has shape \[4, 1\], but the targets \[4\]"):
        OBJECTIVES["regression"].check(torch.zeros(4, 1), batch(torch.zeros(4)))


def test_classes_that_the_model_has_no_output_for_are_refused():
    check = OBJECTIVES["classification"].check
    with pytest.raises(ValueError, match="from 0 to 5, but the model has 3 outputs"):
        check(torch.zeros(2, 3), batch(torch.tensor([0, 5])))
    with pytest.raises(ValueError, match="int64 targets"):
        check(torch.zeros(2, 3), batch(torch.zeros(2)))


def test_unknown_objective():
    with pytest.raises(ValueError, match=r"objective='regresion' is not known. Did you mean"):
        resolve_objective("regresion")
