"""Twins and labels among features."""

import pytest
import torch

import adgn
from adgn.analysis.probe.leaks import telling_features, twin_share
from adgn.data.own.inputs import Inputs
from adgn.data.own.splits import Parts


@pytest.mark.parametrize("sparse", [False, True])
def test_twins_have_the_same_features_and_neighbours(sparse):
    """0 and 1 point to 2; 3 points to 2 with other features; 4 and 5 are alone."""
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.5, 1.0], [0.0, 2.0], [3.0, 1.0], [3.0, 1.0]])
    inputs = Inputs(x.to_sparse_csr() if sparse else x, torch.tensor([[0, 1, 3], [2, 2, 2]]))
    parts = Parts(torch.tensor([0, 2, 4]), torch.tensor([2]), torch.tensor([1, 3, 5]), "")
    assert twin_share(inputs, parts, torch.tensor([7, 7, 0, 7, 1, 1])) == (1 / 3, 1.0)
    assert twin_share(inputs, parts, torch.tensor([7, 6, 0, 7, 1, 1])) == (1 / 3, 0.0)


@pytest.mark.parametrize("sparse", [False, True])
def test_features_that_tell_the_class(sparse):
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 3, (90,), generator=generator)
    x = torch.randn(90, 4, generator=generator)
    x[:, 1] = (y == 2).float()
    x[:, 3] = 2.0 * y + 1
    inputs = Inputs(x.to_sparse_csr() if sparse else x, torch.empty(2, 0, dtype=torch.long))
    assert telling_features(inputs, y, torch.arange(90), 3) == [1, 3]
    values = x[:, [0]] * -3 + 2
    assert telling_features(inputs, values, torch.arange(90), 0) == [0]


def kinds(graph, **options):
    return {warning.kind for warning in adgn.probe(graph, splits=3, hops=2, **options).warnings}


def test_warnings_of_the_probe():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(100, 3, generator=generator)
    n = torch.arange(100)
    ring = [n, (n + 1) % 100]
    assert kinds(adgn.Graph.from_arrays(x, ring, y=(2 * x[:, 1]).tolist())) == {
        "features",
        "feature",
    }
    assert "shell" in kinds(adgn.Graph.from_arrays(x, ring, y=x[:, 1].roll(2).tolist()))
    # A star of leaves with few kinds of features, a pair without labels, and a node alone.
    y = (x[:, 0] > 0).tolist()
    few = (x > 0).float()
    edges = [[0] * 96 + [97], [*range(1, 97), 98]]
    found = kinds(
        adgn.Graph.from_arrays(few[:, 1:], edges, y=[*y[:97], None, None, None], directed=False)
    )
    assert {"twins", "isolated", "unlabelled_parts"} <= found
