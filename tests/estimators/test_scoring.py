import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

from adgn.estimators.scoring import value_scores


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("rows", [2, 50])
def test_values_are_scored_as_by_scikit_learn(rows, columns):
    generator = np.random.default_rng(rows + columns)
    true = generator.normal(100.0, 3.0, (rows, columns))
    predicted = true + generator.normal(0.0, 1.0, (rows, columns))
    assert value_scores(predicted, true) == pytest.approx(
        {
            "r2": r2_score(true, predicted),
            "mse": mean_squared_error(true, predicted),
            "mae": mean_absolute_error(true, predicted),
        },
        rel=1e-12,
    )


@pytest.mark.parametrize("wrong", [0.0, 1.0])
def test_a_column_of_one_value(wrong):
    true = np.array([[2.0, 1.0], [2.0, 4.0], [2.0, 3.0]])
    predicted = true + np.array([wrong, 0.5])
    expected = r2_score(true, predicted)
    assert value_scores(predicted, true)["r2"] == pytest.approx(expected, rel=1e-12)


def test_one_row_has_no_r2():
    found = value_scores(np.array([[1.0]]), np.array([[3.0]]))
    assert np.isnan(found.pop("r2"))
    assert found == {"mse": 4.0, "mae": 2.0}
