import pytest

from adgn.bench.cases import CASES, LIMITS, TARGETS, choose_cases
from adgn.bench.workloads import NETWORKS, WAYS
from adgn.data import NODE_DATASETS


def test_all_run_but_the_large_one():
    assert choose_cases([]) == [
        "property",
        "fields",
        "prediction",
        "physics",
        "computers",
        "pubmed",
        "pubmed-gcn",
        "texas",
        "scale",
        "depth",
    ]
    assert choose_cases([], large=True)[-1] == "large"
    assert choose_cases(["texas"], large=True) == ["texas", "large"]
    assert choose_cases(["large", "texas", "large"], large=True) == ["large", "texas"]


def test_an_unknown_case():
    with pytest.raises(ValueError, match=r"case='propertey' is not known. Did you mean 'property'"):
        choose_cases(["texas", "propertey"])


@pytest.mark.parametrize("name", CASES)
def test_a_case_has_what_it_needs(name):
    case = CASES[name]
    assert set(case.ways) <= set(WAYS)
    assert set(case.needs_mb) <= set(case.ways)
    for points in (case.points, case.quick):
        assert {w.data for w in points} <= {"property", "random", *NODE_DATASETS}
        for data in {w.data for w in points}:
            costs = [(w.size, w.layers) for w in points if w.data == data]
            assert costs == sorted(costs)  # each tells whether there is room for the next


def test_targets_belong_to_cases_that_can_show_them():
    for target in TARGETS:
        assert {"adgn", "pyg", "pyg-csr"} <= set(CASES[target.case].ways)


def test_every_other_network_has_a_limit_in_a_case_that_has_adgn_too():
    assert {limit.way for limit in LIMITS} == set(NETWORKS)
    for limit in LIMITS:
        assert {"adgn", limit.way} <= set(CASES[limit.case].ways)
