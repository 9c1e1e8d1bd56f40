import pytest

from adgn.data import PUBLISHED_COLUMNS, TARGETS, find_target


def test_published_columns_name_their_true_targets():
    assert PUBLISHED_COLUMNS == {
        "SSSP": "laplacian",
        "Eccentricity": "sssp",
        "Diameter": "diameter",
    }
    assert TARGETS["eccentricity"].published_as is None


def test_levels():
    assert {name for name, target in TARGETS.items() if target.level == "node"} == {
        "sssp",
        "eccentricity",
        "laplacian",
    }


def test_unknown_target_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"target='diamter'.*'diameter'"):
        find_target("diamter")
