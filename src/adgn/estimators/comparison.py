"""A fitted estimator beside simple models, on the same rows that none of them has seen."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from adgn.data import Graph, GraphInputError
from adgn.data.features import csr_to_scipy
from adgn.estimators.base import GraphEstimator
from adgn.estimators.candidates import Candidate
from adgn.estimators.hops import HopView, hop_blocks
from adgn.estimators.inputs import Inputs
from adgn.estimators.ridge import fit_ridge
from adgn.estimators.training import Problem, train_candidate

_GCN = {
    "name": "gcn",
    "num_layers": 5,
    "hidden_channels": 64,
    "act": "relu",
    "norm": "layer",
    "residual": True,
    "dropout": 0.5,
}


@dataclass(frozen=True)
class ComparedModel:
    """A row of the comparison.

    Attributes:
        name: The model.
        metric: What was measured.
        score: On the held-out rows.
        low: The lower end of a 95 % confidence interval of the score.
        high: Its upper end.
        rows: How many rows were held out.
        seconds: How long training took.
        scores: All scores.
    """

    name: str
    metric: str
    score: float
    low: float
    high: float
    rows: int
    seconds: float
    scores: dict[str, float]


def compare(
    graph: Graph | None,
    estimator: GraphEstimator,
    *,
    resamples: int = 1000,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> list[ComparedModel]:
    """Compares an estimator with simple models that were trained on the same rows.

    They are: the features alone (logistic regression, or ridge regression for values); a GCN of
    five layers with residuals and layer normalisation, on edges in both directions; and the
    constant, the most frequent class or the mean. Confidence intervals are over the held-out rows,
    by the percentiles of bootstrap resamples, which are the same for all models.

    Args:
        graph: The graph that the estimator was fitted on, whose test rows are held out; or another
            one, of which all labelled rows are. `None`: the one it was fitted on.
        estimator: Fitted in this process.
        resamples: How many bootstrap resamples.
        seed: Of the resamples.
        progress: Told what is being done.

    Returns:
        The estimator first.

    Example:
        >>> import adgn
        >>> x = [[float(n % 2), n] for n in range(40)]
        >>> graph = adgn.Graph.from_arrays(x, [range(39), range(1, 40)], y=[0, 1] * 20)
        >>> model = adgn.NodeClassifier(test_size=0.2, settings={"loop": {"max_epochs": 5}})
        >>> rows = compare(None, model.fit(graph))
        >>> [row.name for row in rows]
        ['NodeClassifier', 'features alone', 'GCN, 5 layers', 'constant']
    """
    problem: Problem | None = getattr(estimator, "problem_", None)
    if problem is None:
        raise ValueError(
            "the estimator was not fitted in this process, so that there are no train rows for the "
            "models to compare it with; fit it, or use scores(graph)"
        )
    tell = progress or (lambda text: None)
    known = graph is None or graph is estimator.graph_
    if known:
        held_out, inputs, y = problem.parts.test, problem.inputs, problem.y
        if not held_out.numel():
            raise GraphInputError(
                "no rows were held out: fit with test_size=0.2, or with a column of splits that "
                "has 'test'"
            )
    else:
        assert graph is not None
        held_out = graph.labelled
        inputs = Inputs.of(graph, estimator.preprocessing_)
        y = estimator.encoder_.encode(graph)
    metric = problem.quality.metric
    chosen = np.random.default_rng(seed).integers(
        0, held_out.numel(), (resamples, held_out.numel())
    )
    rows = []
    for name, make in (
        (type(estimator).__name__, None),
        ("features alone", _features_alone),
        ("GCN, 5 layers", _gcn),
        ("constant", _constant),
    ):
        started = time.monotonic()
        if make is None:
            average = estimator._average_of(inputs)
            seconds = estimator.seconds_
        else:
            tell(f"for comparison: {name}")
            average = make(problem, inputs)
            seconds = time.monotonic() - started
        outputs, targets = average[held_out], y[held_out]
        low, high = _interval(estimator, outputs, targets, metric, chosen)
        scores = estimator._scores(outputs, targets)
        rows.append(
            ComparedModel(
                name, metric, scores[metric], low, high, held_out.numel(), seconds, scores
            )
        )
    return rows


def _interval(
    estimator: GraphEstimator,
    outputs: Tensor,
    y: Tensor,
    metric: str,
    chosen: NDArray[np.int64],
) -> tuple[float, float]:
    if metric == "accuracy":
        hits = (outputs.argmax(-1) == y).numpy()
        values = hits[chosen].mean(axis=1)
    else:
        values = np.array(
            [
                estimator._scores(outputs[rows], y[rows])[metric]
                for rows in torch.from_numpy(chosen).unbind()
            ]
        )
    values = values[np.isfinite(values)]  # R² of one row, or a ranking of one class, is not
    low, high = np.percentile(values, [2.5, 97.5]) if len(values) else (np.nan, np.nan)
    return float(low), float(high)


def _features_alone(problem: Problem, inputs: Inputs) -> Tensor:
    """Logistic regression with scikit-learn's settings; ridge regression for values."""
    if not problem.quality.classes:
        model, _ = fit_ridge(problem.inputs, problem.y, problem.parts, HopView(), problem.quality)
        return model.outputs(inputs).double()
    train = problem.parts.train.numpy()
    model = LogisticRegression(max_iter=1000)
    with warnings.catch_warnings():
        # A thousand steps are enough to compare with.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(_matrix(problem.inputs)[train], problem.y[problem.parts.train].numpy())
    found = torch.from_numpy(model.predict_proba(_matrix(inputs))).double()
    probability = torch.zeros(len(found), problem.quality.classes, dtype=torch.double)
    probability[:, torch.from_numpy(model.classes_)] = found
    return probability


def _matrix(inputs: Inputs) -> NDArray[np.float64]:
    if inputs.node_ptr is not None:
        pooled: NDArray[np.float64] = hop_blocks(inputs, HopView())[0].double().numpy()
        return pooled
    x = inputs.x
    matrix: NDArray[np.float64]
    matrix = csr_to_scipy(x) if x.layout == torch.sparse_csr else x.double().numpy()
    return matrix


def _gcn(problem: Problem, inputs: Inputs) -> Tensor:
    settings = {
        "optimizer": {"lr": 0.01, "weight_decay": 5e-4},
        "loop": {"max_epochs": 500},
        "stopping": {"patience": 60},
    }
    # What the user set about the network is not about this one; how long to train is.
    own = {
        name: problem.settings[name] for name in ("loop", "stopping") if name in problem.settings
    }
    attempt = train_candidate(
        replace(problem, settings=own), Candidate("gcn", "undirected", _GCN, settings)
    )
    if attempt.member is None:
        return _constant(problem, inputs)
    outputs = attempt.member.model.outputs(inputs).double()
    return outputs.softmax(-1) if problem.quality.classes else outputs


def _constant(problem: Problem, inputs: Inputs) -> Tensor:
    """The share of each class, or the mean, of the train rows."""
    mean = problem.quality.targets(problem.y)[problem.parts.train].double().mean(0)
    return mean.expand(inputs.num_rows, -1)
