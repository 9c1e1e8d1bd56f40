import warnings

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data

from adgn.nn import ADGN
from adgn.training import (
    FullGraph,
    LearnedNothingWarning,
    RegressionMetrics,
    Trainer,
    labelled_batch,
)
from adgn.training.constant import _variance
from adgn.training.seeding import own_randomness

EDGES = torch.stack([torch.arange(60), torch.arange(60).roll(1)])


def unscaled():
    """Two classes told by the first feature; the second is large and says nothing."""
    generator = torch.Generator().manual_seed(0)
    y = (torch.arange(60) % 3 == 0).long()
    x = torch.randn(60, 2, generator=generator)
    x[:, 0] += 4 * y
    x[:, 1] *= 1e5
    return x, y


def trained(x, y, *, out=2, objective="classification", epochs=30, model=None, nodes=None):
    with own_randomness(0):
        model = model or ADGN(x.size(1), 8, out, num_layers=2)
    nodes = torch.arange(len(y)) if nodes is None else nodes
    trainer = Trainer(model, FullGraph(x, EDGES, y, nodes), objective=objective, max_epochs=epochs)
    trainer.fit()
    return trainer


@pytest.mark.parametrize("sparse", [False, True])
def test_an_unscaled_column_is_named(sparse):
    x, y = unscaled()
    x = x.to_sparse_csr() if sparse else x
    largest = f"{float(unscaled()[0].abs().max()):g}"
    expected = (
        rf"after 30 epochs the train accuracy is 0\.\d+, and 0\.6667 is that of always .*"
        rf"column 1 of x has values up to {largest.replace('+', '.')}: standardise"
    )
    with pytest.warns(LearnedNothingWarning, match=expected) as heard:
        trained(x, y)
    assert heard[0].filename == __file__  # where `fit` was called, not where it is written


def test_the_same_features_standardised_are_learnt_without_a_word():
    x, y = unscaled()
    x = (x - x.mean(dim=0)) / x.std(dim=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert trained(x, y, epochs=60).evaluate("train")["accuracy"] > 0.9


class Constant(nn.Module):
    """Answers the same everywhere."""

    def __init__(self, answer):
        super().__init__()
        self.answer = nn.Parameter(torch.tensor(answer), requires_grad=True)

    def forward(self, x, edge_index):
        return self.answer.expand(x.size(0), -1)


def test_a_constant_regression_is_told():
    y = torch.randn(60, generator=torch.Generator().manual_seed(0))
    x = torch.randn(60, 2)
    with pytest.warns(LearnedNothingWarning, match=r"train mse .* mean of the targets.*scale"):
        trained(x, y, objective="regression", epochs=10, model=Constant([0.0]))


def test_nothing_is_expected_of_a_few_epochs_or_of_targets_that_are_all_the_same():
    x, y = unscaled()
    trained(x, y, epochs=9)
    trained(x, torch.ones(60, 1), objective="regression", epochs=10, model=Constant([0.0]))
    trained(x, torch.ones_like(y), epochs=10)


def test_rows_that_are_not_scored_do_not_count():
    x, y = unscaled()
    y[y == 0] = -1  # one known class is left
    trained(x, y, epochs=10, model=Constant([1.0, 0.0]))


def test_the_constant_error_is_the_score_of_the_mean():
    """With graphs of different sizes, whose nodes have different shares."""
    generator = torch.Generator().manual_seed(0)
    graphs = [
        Data(torch.ones(n, 1), EDGES[:, :0], y=torch.randn(n, 2, generator=generator))
        for n in (2, 3, 7)
    ]
    batch = labelled_batch(Batch.from_data_list(graphs), "train")
    share = batch.weight.double()
    mean = share @ batch.y.double()
    metrics = RegressionMetrics()
    metrics.update(mean.expand_as(batch.y), batch)
    assert _variance(batch.y, share) == pytest.approx(metrics.compute()["mse"], rel=1e-6)
