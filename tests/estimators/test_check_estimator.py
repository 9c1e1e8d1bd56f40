"""The checks of scikit-learn's `check_estimator` that do not need a matrix for X.

All others fit on a matrix of features; here X is a graph, or positions of the rows of one.
"""

import pytest
from sklearn.utils import estimator_checks

from adgn.estimators import ESTIMATORS

CHECKS = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_a_check_of_scikit_learn(name, check):
    getattr(estimator_checks, check)(name, ESTIMATORS[name]())
