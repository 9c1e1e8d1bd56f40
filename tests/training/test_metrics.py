import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    mean_absolute_error,
    roc_auc_score,
)
from torch import nn
from torch_geometric.data import Batch, Data

from adgn.nn import ADGN
from adgn.training import (
    ClassificationMetrics,
    FullGraph,
    LabelledBatch,
    LearnedNothingWarning,
    RegressionMetrics,
    Trainer,
    labelled_batch,
)
from adgn.training.metrics import _variance, class_probabilities, log10, ranking_scores
from adgn.training.seeding import own_randomness


def node_batch(counts, y):
    """A batch of graphs with these node counts, weighed as the loss of the paper does."""
    counts = torch.tensor(counts)
    weight = (1 / (counts * len(counts))).repeat_interleave(counts)
    return LabelledBatch(x=y, graph=y, y=y, size=len(counts), num_graphs=len(counts), weight=weight)


@given(
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), min_size=1, max_size=4),
    st.integers(0, 1000),
)
def test_regression_scores_are_means_over_graphs_of_means_over_nodes(batches, seed):
    generator = torch.Generator().manual_seed(seed)
    metrics, per_graph, per_batch, absolute = RegressionMetrics(), [], [], []
    for counts in batches:
        y = torch.randn(sum(counts), 1, generator=generator)
        output = torch.randn(sum(counts), 1, generator=generator)
        metrics.update(output, node_batch(counts, y))
        pieces = (output - y).double().split(counts)
        errors = [float((piece**2).mean()) for piece in pieces]
        absolute += [float(piece.abs().mean()) for piece in pieces]
        per_graph += errors
        per_batch.append(np.mean(errors))
    scores = metrics.compute()
    assert scores["mse"] == pytest.approx(np.mean(per_graph), rel=1e-6)
    assert scores["log10_mse"] == pytest.approx(math.log10(np.mean(per_graph)), abs=1e-6)
    assert scores["log10_mse_paper"] == pytest.approx(math.log10(np.mean(per_batch)), abs=1e-6)
    assert scores["mae"] == pytest.approx(np.mean(absolute), rel=1e-6)


def test_paper_metric_counts_a_short_batch_like_a_full_one():
    metrics = RegressionMetrics()
    for error, graphs in ((1.0, 512), (10.0, 256)):
        y = torch.zeros(graphs, 1)
        metrics.update(y + error, LabelledBatch(x=y, graph=y, y=y, size=graphs))
    scores = metrics.compute()
    assert 10 ** scores["log10_mse_paper"] == pytest.approx((1 + 100) / 2)
    assert scores["mse"] == pytest.approx((512 + 256 * 100) / 768)


@given(st.integers(2, 6), st.integers(1, 40), st.integers(0, 1000))
def test_classification_scores_agree_with_scikit_learn(classes, rows, seed):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (rows,), generator=generator)
    logits = torch.randn(rows, classes, generator=generator)
    metrics = ClassificationMetrics()
    for part in torch.arange(rows).split(7):
        batch = LabelledBatch(x=logits, graph=logits, y=y[part], size=len(part))
        metrics.update(logits[part], batch)
    scores = metrics.compute()
    predicted = logits.argmax(dim=1)
    assert scores["accuracy"] == pytest.approx(accuracy_score(y, predicted))
    assert scores["macro_f1"] == pytest.approx(f1_score(y, predicted, average="macro"))
    expected = float(torch.nn.functional.cross_entropy(logits, y))
    assert scores["loss"] == pytest.approx(expected, rel=1e-5)


@given(st.integers(1, 30), st.integers(0, 1000), st.booleans())
def test_the_ranking_of_two_classes_agrees_with_scikit_learn(rows, seed, ties):
    generator = torch.Generator().manual_seed(seed)
    y = torch.cat([torch.tensor([0, 1]), torch.randint(2, (rows,), generator=generator)])
    logits = torch.randn(len(y), 2, generator=generator)
    probability = class_probabilities(logits.round() if ties else logits)
    roc_auc, precision = ranking_scores(probability, y)
    assert roc_auc == pytest.approx(roc_auc_score(y, probability[:, 1]), abs=1e-12)
    assert precision == pytest.approx(average_precision_score(y, probability[:, 1]), abs=1e-12)


@given(st.integers(3, 6), st.integers(1, 30), st.integers(0, 1000), st.booleans())
def test_the_ranking_of_more_classes_agrees_with_scikit_learn(classes, rows, seed, ties):
    generator = torch.Generator().manual_seed(seed)
    y = torch.cat([torch.arange(classes), torch.randint(classes, (rows,), generator=generator)])
    logits = torch.randn(len(y), classes, generator=generator)
    probability = class_probabilities(logits.round() if ties else logits)
    roc_auc, precision = ranking_scores(probability, y)
    expected = roc_auc_score(y, probability, multi_class="ovr", average="macro")
    assert roc_auc == pytest.approx(expected, abs=1e-12)
    expected = average_precision_score(y, probability, average="macro")
    assert precision == pytest.approx(expected, abs=1e-12)


def test_the_ranking_is_over_all_batches():
    generator = torch.Generator().manual_seed(3)
    y, logits = torch.arange(20) % 3, torch.randn(20, 3, generator=generator)
    metrics = ClassificationMetrics()
    for part in torch.arange(20).split(7):
        metrics.update(logits[part], LabelledBatch(x=y, graph=y, y=y[part], size=len(part)))
    scores = metrics.compute()
    probability = logits.double().softmax(dim=1)
    assert scores["roc_auc"] == pytest.approx(roc_auc_score(y, probability, multi_class="ovr"))
    assert scores["average_precision"] == pytest.approx(average_precision_score(y, probability))


def test_classes_without_a_ranking_are_left_out():
    probability = class_probabilities(torch.tensor([[3.0, 1, 0], [0, 1, 2], [1, 0, 3], [0, 2, 3]]))
    y = torch.tensor([0, 2, 0, 2])  # nobody is of class 1
    present = torch.tensor([0, 2])
    member = (y.view(-1, 1) == present).numpy()
    roc_auc, precision = ranking_scores(probability, y)
    assert roc_auc == pytest.approx(roc_auc_score(member, probability[:, present]))
    assert precision == pytest.approx(average_precision_score(member, probability[:, present]))
    assert all(map(math.isnan, ranking_scores(probability, torch.zeros(4, dtype=torch.long))))


def test_mae_agrees_with_scikit_learn_on_a_single_graph():
    y, output = torch.randn(9, 1), torch.randn(9, 1)
    metrics = RegressionMetrics()
    metrics.update(output, LabelledBatch(x=y, graph=y, y=y, size=9))
    assert metrics.compute()["mae"] == pytest.approx(mean_absolute_error(y, output), rel=1e-6)


@pytest.mark.parametrize("metrics", [RegressionMetrics, ClassificationMetrics])
def test_no_batches_no_scores(metrics):
    with pytest.raises(ValueError, match="empty"):
        metrics().compute()


def test_log10_of_zero_and_of_what_is_no_number():
    assert log10(0.0) == -math.inf
    assert math.isnan(log10(math.nan))


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
