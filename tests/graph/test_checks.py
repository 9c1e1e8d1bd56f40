import pytest
import torch

from adgn.graph.checks import (
    check_batch,
    check_count,
    check_features,
    check_finite,
    check_positive,
)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (torch.ones(4), ValueError, r"shape \[4\].*unsqueeze\(-1\)"),
        (torch.ones(4, 2), ValueError, "2 features per node .* in_channels=3"),
        (torch.ones(4, 3, dtype=torch.long), TypeError, r"x\.float\(\)"),
        (torch.ones(4, 3, dtype=torch.float64), TypeError, "x has dtype torch.float64"),
        (torch.ones(4, 3, device="meta"), ValueError, "x is on meta, but the weights on cpu"),
        (torch.tensor([[0, float("inf"), 0]]), ValueError, r"x\[0, 1\] = inf is not finite \(1 of"),
        (torch.tensor([[0, 0, float("nan")]]), ValueError, r"x\[0, 2\] = nan"),
        (
            torch.tensor([[0, float("inf"), -float("inf")]]),
            ValueError,
            r"x\[0, 1\] = inf is not finite \(2 of 3",
        ),
    ],
)
def test_wrong_features_are_named(x, error, message):
    with pytest.raises(error, match=message):
        check_features(x, 3, like=torch.ones(1))


def test_sparse_features_are_checked():
    x = torch.tensor([[0.0, float("nan")]]).to_sparse_csr()
    with pytest.raises(ValueError, match="not finite"):
        check_features(x)


def test_finite_numbers_whose_sum_overflows_are_finite():
    check_finite("x", torch.full((4,), 3e38))  # must not raise
    with pytest.raises(ValueError, match=r"x\[4\]"):
        check_finite("x", torch.tensor([3e38] * 4 + [float("nan")]))


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        (torch.zeros(2), TypeError, "batch has dtype torch.float32"),
        (torch.zeros(3, dtype=torch.long), ValueError, r"shape \[3\]; expected \[2\]"),
        (torch.tensor([0, -1]), ValueError, r"batch\[1\] = -1 is negative"),
        (torch.zeros(2, dtype=torch.long, device="meta"), ValueError, "batch is on meta"),
    ],
)
def test_wrong_batches_are_named(batch, error, message):
    with pytest.raises(error, match=message):
        check_batch(batch, 2, torch.ones(2, 1))


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "1", None, True])
def test_what_is_not_positive_is_refused(value):
    with pytest.raises(ValueError, match="epsilon="):
        check_positive("epsilon", value)


@pytest.mark.parametrize("value", [0, -3, 1.5, "2", None, True])
def test_what_is_no_count_is_refused(value):
    with pytest.raises(ValueError, match="num_layers="):
        check_count("num_layers", value)


def test_a_batch_size_too_small_is_named():
    with pytest.raises(ValueError, match="batch_size=1, but batch has graph numbers up to 2"):
        check_batch(torch.tensor([0, 2]), 2, torch.ones(2, 1), 1)


@pytest.mark.parametrize("value", [None, [[1.0]], 3])
def test_what_is_no_tensor_is_named(value):
    with pytest.raises(TypeError, match=r"x is a .*; pass a torch\.Tensor"):
        check_features(value)
