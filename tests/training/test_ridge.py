"""Ridge regression from streamed sums: the same as scikit-learn's on the whole matrix."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from adgn.training.ridge import (
    GrowingRidge,
    KernelRidge,
    RidgeSolution,
    RidgeStatistics,
    _refined,
)


def problem(
    rows: int, features: int, targets: int, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features far from zero, targets and weights."""
    generator = torch.Generator().manual_seed(seed)
    x = 5 + torch.randn(rows, features, generator=generator, dtype=torch.double)
    y = torch.randn(rows, targets, generator=generator, dtype=torch.double)
    return x, y, 0.1 + torch.rand(rows, generator=generator, dtype=torch.double)


def solved(
    x: torch.Tensor,
    y: torch.Tensor,
    weight: torch.Tensor | None,
    batch: int,
    penalties: list[float],
    **options: bool,
) -> list[RidgeSolution]:
    """The solutions of rows that come in batches."""
    statistics = RidgeStatistics(x.size(1), y.size(1))
    for first in range(0, len(x), batch):
        part = slice(first, first + batch)
        statistics.add(x[part], y[part], None if weight is None else weight[part])
    return statistics.solve(penalties, **options)


@given(
    rows=st.integers(2, 40),
    features=st.integers(1, 25),
    targets=st.integers(1, 3),
    batch=st.integers(1, 40),
    weighted=st.booleans(),
    seed=st.integers(0, 5),
)
@settings(max_examples=60, deadline=None)
def test_streamed_rows_give_what_scikit_learn_gives_on_the_whole_matrix(
    rows: int, features: int, targets: int, batch: int, weighted: bool, seed: int
) -> None:
    x, y, weight = problem(rows, features, targets, seed)
    penalties = [0.01, 1.0, 100.0]
    found = solved(x, y, weight if weighted else None, batch, penalties)
    for penalty, solution in zip(penalties, found, strict=True):
        reference = Ridge(penalty, solver="svd").fit(
            x.numpy(), y.numpy(), sample_weight=weight.numpy() if weighted else None
        )
        assert solution.penalty == penalty
        coefficients = np.asarray(reference.coef_).reshape(targets, features).T
        np.testing.assert_allclose(solution.weight.numpy(), coefficients, atol=1e-8)
        expected = reference.predict(x.numpy()).reshape(rows, targets)
        np.testing.assert_allclose(solution.outputs(x).numpy(), expected, atol=1e-8)


@pytest.mark.parametrize(("rows", "features"), [(50, 7), (7, 50)])
def test_a_mean_far_from_zero_costs_no_digits(rows: int, features: int) -> None:
    x, y, _ = problem(rows, features, 2)
    near = solved(x, y, None, 5, [0.1])[0]
    far = solved(x + 1e6, y, None, 5, [0.1])[0]
    torch.testing.assert_close(far.weight, near.weight, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("rows", "features"), [(50, 7), (7, 50)])
def test_standardised_features_are_penalised_alike_in_any_unit(rows: int, features: int) -> None:
    x, y, _ = problem(rows, features, 2)
    x[:, 0] = 3.0  # constant: nothing to divide by
    unit = torch.logspace(-3, 3, features, dtype=torch.double)
    plain = solved(x, y, None, 9, [0.1], standardise=True, relative=True)[0]
    scaled = solved(x * unit, y, None, 9, [0.1], standardise=True, relative=True)[0]
    torch.testing.assert_close(scaled.outputs(x * unit), plain.outputs(x), rtol=1e-9, atol=1e-9)
    reference = Ridge(0.1 * _unit(x, rows < features), solver="svd").fit(_standard(x), y.numpy())
    expected = torch.from_numpy(reference.predict(_standard(x)))
    torch.testing.assert_close(plain.outputs(x), expected, rtol=1e-8, atol=1e-8)


def _standard(x: torch.Tensor) -> np.ndarray:
    deviation = x.std(0, unbiased=False)
    return ((x - x.mean(0)) / torch.where(deviation > 0, deviation, 1.0)).numpy()


def _unit(x: torch.Tensor, dual: bool) -> float:
    standard = _standard(x)
    gram = standard @ standard.T if dual else standard.T @ standard
    return float(gram.diagonal().mean())


def test_a_penalty_too_small_for_a_solution_is_left_out() -> None:
    x = torch.ones(8, 1, dtype=torch.double) * torch.arange(8.0).double().view(-1, 1)
    twice = torch.cat([x, x], dim=1)
    found = solved(twice, x, None, 8, [0.0, 1e-3])
    assert [solution.penalty for solution in found] == [1e-3]
    with pytest.raises(ValueError, match="give a larger penalty"):
        solved(twice * float("nan"), x, None, 8, [1e-3])


def test_wrong_input_is_told() -> None:
    statistics = RidgeStatistics(2, 1)
    with pytest.raises(ValueError, match="no rows to learn from"):
        statistics.solve([1.0])
    with pytest.raises(ValueError, match=r"features of shape \[3, 4\].*give \[3, 2\]"):
        statistics.add(torch.zeros(3, 4), torch.zeros(3, 1))
    with pytest.raises(ValueError, match=r"targets of shape \[2, 1\].*give \[3, 1\]"):
        statistics.add(torch.zeros(3, 2), torch.zeros(2, 1))
    with pytest.raises(ValueError, match=r"weight of shape \[2\].*give \[3\]"):
        statistics.add(torch.zeros(3, 2), torch.zeros(3, 1), torch.ones(2))
    statistics.add(torch.zeros(0, 2), torch.zeros(0, 1))
    assert statistics.rows == 0
    statistics.add(torch.eye(2), torch.ones(2, 1))
    with pytest.raises(ValueError, match=r"penalties=\[-1.0\] are not valid"):
        statistics.solve([-1.0])


@given(
    rows=st.integers(3, 30),
    widths=st.lists(st.integers(1, 20), min_size=1, max_size=4),
    weighted=st.booleans(),
    seed=st.integers(0, 3),
)
def test_features_that_grow_give_the_solutions_of_scikit_learn(rows, widths, weighted, seed):
    """Fewer features than rows at first, more later: features × features, then rows × rows."""
    x, y, weight = problem(rows, sum(widths), 2, seed)
    ridge = GrowingRidge(y, weight if weighted else None)
    last = 0
    for block in torch.split(x, widths, dim=1):
        ridge.extend(block)
        last += block.size(1)
        assert ridge.num_features == last
        for solution in ridge.solve([0.3, 20.0]):
            expected = Ridge(alpha=solution.penalty, tol=1e-12).fit(
                x[:, :last].numpy(), y.numpy(), weight.numpy() if weighted else None
            )
            np.testing.assert_allclose(
                solution.outputs(x[:, :last]), expected.predict(x[:, :last].numpy()), atol=1e-8
            )


@pytest.mark.parametrize("features", [4, 30])
def test_scaled_features_are_those_of_scaled_columns_or_blocks(features):
    x, y, _ = problem(12, features, 2)
    x = x * torch.linspace(0.1, 10.0, features)
    for scaling, divisor in (
        ("columns", x.std(0, unbiased=False)),
        ("blocks", x.var(0, unbiased=False).mean().sqrt()),
    ):
        ridge = GrowingRidge(y, scaling=scaling)
        ridge.extend(x)
        expected = Ridge(alpha=0.5, tol=1e-12).fit((x / divisor).numpy(), y.numpy())
        np.testing.assert_allclose(
            ridge.solve([0.5])[0].outputs(x), expected.predict((x / divisor).numpy()), atol=1e-8
        )


def test_many_rows_give_the_solutions_of_scikit_learn(monkeypatch):
    """Factors in single precision, refined."""
    monkeypatch.setattr("adgn.training.ridge._LARGE", 1)
    x, y, _ = problem(20, 50, 2)
    ridge = GrowingRidge(y)
    ridge.extend(x)
    for solution in ridge.solve([0.3, 20.0]):
        expected = Ridge(alpha=solution.penalty, tol=1e-12).fit(x.numpy(), y.numpy())
        np.testing.assert_allclose(solution.outputs(x), expected.predict(x.numpy()), atol=1e-7)


def test_growing_features_of_another_length_are_told():
    ridge = GrowingRidge(torch.zeros(3, 1))
    with pytest.raises(ValueError, match="no features to learn from"):
        ridge.solve([1.0])
    with pytest.raises(ValueError, match=r"block of shape \[4, 1\] is not valid; give \[3, F\]"):
        ridge.extend(torch.zeros(4, 1))
    with pytest.raises(ValueError, match="targets of shape"):
        GrowingRidge(torch.zeros(3))


@given(
    rows=st.integers(3, 30),
    widths=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    weighted=st.booleans(),
    single=st.booleans(),
    seed=st.integers(0, 3),
)
def test_inner_products_give_the_solutions_of_scikit_learn(rows, widths, weighted, single, seed):
    """Of blocks that are scaled alike, from products about any point, in either precision."""
    x, y, weight = problem(rows + 5, sum(widths), 2, seed)
    y, share = y[:rows], weight[:rows] if weighted else torch.ones(rows, dtype=torch.double)
    ridge, scaled = KernelRidge(y, share if weighted else None), []
    for block in torch.split(x, widths, dim=1):
        moved = (block + 0.3).float() if single else block + 0.3
        ridge.extend(
            moved[:rows] @ moved[:rows].t(), moved[rows:] @ moved[:rows].t(), len(block.t())
        )
        mean = share @ block[:rows] / share.sum()
        variance = share @ (block[:rows] - mean).square() / share.sum()
        scaled.append(block / variance.mean().sqrt())
    whole = torch.cat(scaled, dim=1).numpy()
    for penalty, outputs in ridge.solve([0.3, 20.0]):
        model = Ridge(alpha=penalty, tol=1e-12).fit(whole[:rows], y.numpy(), share.numpy())
        expected = model.predict(whole[rows:])
        np.testing.assert_allclose(outputs, expected, atol=1e-3 if single else 1e-8)


@pytest.mark.parametrize("features", [8, 60])
def test_relative_penalties_of_products_are_those_of_features(features):
    x, y, _ = problem(40, features, 2)
    growing, kernel = GrowingRidge(y[:30], scaling="blocks"), KernelRidge(y[:30])
    growing.extend(x[:30])
    kernel.extend(x[:30] @ x[:30].t(), x[30:] @ x[:30].t(), features)
    for solution, (penalty, outputs) in zip(
        growing.solve([1e-3, 0.1], relative=True),
        kernel.solve([1e-3, 0.1], relative=True),
        strict=True,
    ):
        assert solution.penalty == penalty
        torch.testing.assert_close(outputs, solution.outputs(x[30:]))


def test_factors_in_single_precision_give_solutions_in_double_precision():
    """Rows that come twice: with the smallest penalty the condition is 1e9."""
    x = torch.randint(-9, 10, (10, 15), generator=torch.Generator().manual_seed(0)).double()
    gram = torch.cat([x, x]) @ torch.cat([x, x]).t()  # whole numbers: exact in single precision
    right = problem(20, 1, 2)[1]
    penalties = [1e-6, 1e-2, 1.0]
    for penalty, found in zip(penalties, _refined(gram.float(), right, penalties), strict=True):
        expected = torch.linalg.solve(gram + penalty * torch.eye(20, dtype=torch.double), right)
        torch.testing.assert_close(gram @ found, gram @ expected, rtol=1e-6, atol=1e-6)


def test_products_of_wrong_shapes_are_told():
    ridge = KernelRidge(torch.zeros(3, 1))
    with pytest.raises(ValueError, match="no features to learn from"):
        ridge.solve([1.0])
    with pytest.raises(ValueError, match=r"shapes \[4, 4\] and \[1, 3\].*give \[3, 3\]"):
        ridge.extend(torch.zeros(4, 4), torch.zeros(1, 3), 2)
    ridge.extend(torch.full((3, 3), float("nan")), torch.zeros(1, 3), 2)
    with pytest.raises(ValueError, match="give a larger penalty"):
        ridge.solve([1.0])
