from itertools import combinations, product

import pytest

from tests.crossing import covering, exhaustive


@pytest.mark.parametrize(("strength", "most"), [(1, 4), (2, 12), (3, 24)])
def test_every_combination_of_so_many_options_is_in_make_test(strength, most):
    axes = ["ab", range(3), "wxyz"]
    names, cases = covering("first, second, third", *axes, strength=strength).args
    assert names == "first, second, third"
    assert [case.values for case in cases] == list(product(*axes))
    chosen = [case.values for case in cases if exhaustive not in case.marks]
    assert len(chosen) <= most
    for some in combinations(range(3), strength):
        met = {tuple(case[axis] for axis in some) for case in chosen}
        assert met == set(product(*(axes[axis] for axis in some)))
