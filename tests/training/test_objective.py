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
