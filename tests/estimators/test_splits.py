from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch

from adgn.data import Graph, GraphInputError
from adgn.estimators.splits import split_rows


def graph_of(y, **columns):
    graph = Graph.from_arrays([[float(n)] for n in range(len(y))], [[0], [1]], y=y)
    return replace(graph, **{name: pa.array(values) for name, values in columns.items()})


def labels(y):
    return torch.tensor([-1 if value is None else value for value in y])


def test_parts_are_disjoint_and_cover_what_is_labelled():
    y = [0, 1, None, 1] * 25
    parts = split_rows(graph_of(y), labels(y), test_size=0.2, seed=3)
    rows = torch.cat([parts.train, parts.valid, parts.test])
    assert rows.sort().values.tolist() == [n for n, value in enumerate(y) if value is not None]
    assert parts.sizes == (48, 12, 15)


def test_each_class_has_the_same_share():
    y = [0] * 80 + [1] * 20
    parts = split_rows(graph_of(y), labels(y))
    assert torch.bincount(labels(y)[parts.valid]).tolist() == [16, 4]


def test_a_class_of_one_row_is_trained_on():
    y = [0] * 10 + [1] * 10 + [2]
    for seed in range(20):
        parts = split_rows(graph_of(y), labels(y), seed=seed)
        assert 20 in parts.train
        assert parts.sizes == (17, 4, 0)


def test_the_seed_decides():
    y = [0, 1] * 50
    first, again, other = (split_rows(graph_of(y), labels(y), seed=s) for s in (1, 1, 2))
    assert first.valid.equal(again.valid)
    assert not first.valid.equal(other.valid)


def test_the_latest_rows_validate_and_the_very_latest_test():
    y = [0, 1] * 10
    time = np.random.default_rng(0).permutation(20)
    parts = split_rows(graph_of(y, time=time), labels(y), test_size=0.2)
    assert time[parts.train].max() < time[parts.valid].min()
    assert time[parts.valid].max() < time[parts.test].min()
    assert "times" in parts.rule


def test_rows_without_a_time_are_early_ones():
    y = [0, 1] * 5
    parts = split_rows(graph_of(y, time=[None, *range(9)]), labels(y))
    assert 0 in parts.train


def test_groups_stay_together():
    y = [0, 1] * 30
    groups = [f"g{n // 6}" for n in range(60)]
    parts = split_rows(graph_of(y, groups=groups), labels(y), test_size=0.2)
    names = np.array(groups)
    seen = [set(names[rows]) for rows in (parts.train, parts.valid, parts.test)]
    assert all(seen)
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])


def test_one_group_cannot_be_split():
    y = [0, 1] * 5
    with pytest.raises(GraphInputError, match=r"has 1 group\(s\) .* give at least 2, or"):
        split_rows(graph_of(y, groups=["a"] * 10), labels(y))


def test_each_part_has_a_group_of_its_own():
    y = [0, 1] * 5
    with pytest.raises(GraphInputError, match=r"at least 3, hold nothing out \(test_size=0\)"):
        split_rows(graph_of(y, groups=["a", "b"] * 5), labels(y), test_size=0.2)
    for seed in range(5):  # the largest group may not leave one group for two parts
        groups = ["a"] * 8 + ["b", "c"]
        parts = split_rows(graph_of(y, groups=groups), labels(y), test_size=0.85, seed=seed)
        assert min(parts.sizes) > 0


def test_the_users_column_is_followed():
    y = [0, 1] * 4
    split = ["train"] * 4 + ["Valid", "val"] + ["test", None]
    parts = split_rows(graph_of(y, split=split), labels(y))
    assert parts.train.tolist() == [0, 1, 2, 3]
    assert parts.valid.tolist() == [4, 5]
    assert parts.test.tolist() == [6]
    (note,) = parts.notes
    assert "is empty for 1 of 8 labelled nodes" in note


def test_without_valid_rows_some_train_rows_validate():
    y = [0, 1] * 10
    parts = split_rows(graph_of(y, split=["train"] * 16 + ["test"] * 4), labels(y))
    assert parts.sizes == (13, 3, 4)
    assert "of its train rows some validate" in parts.rule


def test_a_column_without_train_rows_is_told():
    y = [0, 1] * 4
    with pytest.raises(GraphInputError, match="names no labelled node 'train'"):
        split_rows(graph_of(y, split=["test"] * 8), labels(y))


def test_only_some_rows_may_be_used():
    y = [0, 1] * 10
    parts = split_rows(graph_of(y), labels(y), rows=torch.arange(10))
    assert torch.cat([parts.train, parts.valid]).max() < 10


def test_too_few_labels_are_told():
    y = [0, 1, None, None]
    with pytest.raises(GraphInputError, match="2 labelled node"):
        split_rows(graph_of(y), labels(y))


@pytest.mark.parametrize("name", ["validation_size", "test_size"])
@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_wrong_shares_are_told(name, share):
    y = [0, 1] * 5
    with pytest.raises(ValueError, match=f"{name}="):
        split_rows(graph_of(y), labels(y), **{name: share})


def test_values_are_split_at_random():
    graph = Graph.from_arrays([[0.0]] * 10, [[0], [1]], y=[n / 3 for n in range(10)])
    assert split_rows(graph, None).sizes == (8, 2, 0)
