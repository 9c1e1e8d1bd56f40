import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from adgn.data import (
    PAPER_DATA_SEEDS,
    fixed_split,
    load,
    num_fixed_splits,
    split_per_class,
)

labels = st.lists(st.integers(0, 3), min_size=12, max_size=60).filter(
    lambda ys: max(ys.count(y) for y in ys) > 5
)


def split_by_the_rule(y, seed, num_train, num_val):
    """The protocol with the global generator, set by set."""
    state = random.getstate()
    random.seed(seed)
    train, val, test = set(), set(), set()
    for label in dict.fromkeys(y):
        nodes = [node for node, other in enumerate(y) if other == label]
        random.shuffle(nodes)
        if len(nodes) <= num_train + num_val:
            continue
        train |= set(nodes[:num_train])
        val |= set(nodes[num_train : num_train + num_val])
        test |= set(nodes[num_train + num_val :])
    random.setstate(state)
    return train, val, test


@given(labels, st.integers(0, 2**32 - 1))
def test_split_follows_the_rule(ys, seed):
    split = split_per_class(torch.tensor(ys), seed, num_train=2, num_val=3)
    expected = split_by_the_rule(ys, seed, 2, 3)
    for mask, nodes in zip((split.train, split.val, split.test), expected, strict=True):
        assert set(mask.nonzero().view(-1).tolist()) == nodes
    small = [label for label in set(ys) if ys.count(label) <= 5]
    assert split.unused.tolist() == [label in small for label in ys]


@pytest.mark.parametrize("name", ["pubmed", "cs", "physics", "computers", "photo"])
def test_paper_splits_of_the_real_data_sets(data_root, name):
    y = load(name, data_root).y
    classes = int(y.max()) + 1
    seen = []
    for seed in PAPER_DATA_SEEDS:
        split = split_per_class(y, seed)
        assert torch.bincount(y[split.train], minlength=classes).tolist() == [20] * classes
        assert torch.bincount(y[split.val], minlength=classes).tolist() == [30] * classes
        total = split.train.int() + split.val.int() + split.test.int()
        assert (total == 1).all()  # disjoint, and nothing is dropped
        again = split_per_class(y, seed)
        assert torch.equal(split.train, again.train)
        assert torch.equal(split.val, again.val)
        seen.append(tuple(split.train.nonzero().view(-1).tolist()))
    assert len(set(seen)) == len(PAPER_DATA_SEEDS)


def test_a_real_data_set_by_the_rule(data_root):
    y = load("cs", data_root).y
    split = split_per_class(y, PAPER_DATA_SEEDS[3])
    train, val, test = split_by_the_rule(y.tolist(), PAPER_DATA_SEEDS[3], 20, 30)
    assert set(split.train.nonzero().view(-1).tolist()) == train
    assert set(split.val.nonzero().view(-1).tolist()) == val
    assert set(split.test.nonzero().view(-1).tolist()) == test


@pytest.mark.parametrize(
    "name", ["chameleon", "squirrel", "actor", "cornell", "texas", "wisconsin"]
)
def test_geom_gcn_splits(data_root, name):
    data = load(name, data_root)
    assert num_fixed_splits(data) == 10
    for number in range(10):
        split = fixed_split(data, number)
        covered = split.train.int() + split.val.int() + split.test.int()
        assert (covered == 1).all()
        shares = [size / data.num_nodes for size in split.sizes]
        assert shares == pytest.approx([0.48, 0.32, 0.2], abs=0.01)


@pytest.mark.parametrize(("name", "classes"), [("cora", 7), ("pubmed", 3)])
def test_planetoid_s_public_split(data_root, name, classes):
    data = load(name, data_root)
    assert num_fixed_splits(data) == 1
    split = fixed_split(data)
    assert split.sizes == (20 * classes, 500, 1000)
    assert torch.bincount(data.y[split.train]).tolist() == [20] * classes
    assert not (split.train & split.val | split.train & split.test | split.val & split.test).any()


def test_wrong_requests_are_refused():
    y = torch.tensor([0] * 10 + [1] * 10)
    with pytest.raises(ValueError, match="largest class has 10 nodes"):
        split_per_class(y, 0)
    with pytest.raises(ValueError, match="num_train=0"):
        split_per_class(y, 0, num_train=0)
    with pytest.raises(ValueError, match=r"num_val=1.5 is not an integer"):
        split_per_class(y, 0, num_val=1.5)
    with pytest.raises(ValueError, match=r"seed=0.5 is not an integer"):
        split_per_class(y, 0.5, num_train=1, num_val=1)
    with pytest.raises(ValueError, match="float32"):
        split_per_class(y.float(), 0)
    with pytest.raises(ValueError, match="no published split"):
        fixed_split(Data(y=y))
    masks = {
        f"{part}_mask": torch.zeros(20, 10, dtype=torch.bool) for part in ("train", "val", "test")
    }
    for number in (10, -1, 1.5, True):
        with pytest.raises(ValueError, match=rf"number={number} .* 10 split"):
            fixed_split(Data(y=y, **masks), number)
