"""What to be careful about, in words with numbers."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from adgn.analysis.probe.findings import LeakWarning
from adgn.analysis.probe.leaks import telling_features, twin_share
from adgn.analysis.probe.measure import Screening, Way
from adgn.analysis.probe.question import Question
from adgn.analysis.probe.shells import neighbour_matrix

_EXACT = 1e-3  # of the constant's error: below, the target is computed rather than predicted
_TWINS = 0.01  # of the test nodes
_NAMED = 5  # features


def cautions(
    question: Question,
    screened: Screening,
    *,
    constant: float,
    own: float,
    hops: Mapping[Way, Sequence[float]],
    known: Tensor,
    isolated: int,
) -> list[LeakWarning]:
    """All warnings.

    Args:
        question: What is asked.
        screened: What was tried on the first split.
        constant: The error of the constant prediction.
        own: That of the features alone.
        hops: For each way, the errors from one hop on.
        known: `[rows]`; which are labelled.
        isolated: How many nodes have no neighbour.
    """
    found = []
    if own <= _EXACT * constant:
        text = "the features alone give the target: is it among them?"
        found.append(LeakWarning("features", text))
    else:
        found += _computable(hops, _EXACT * constant)
        found += _shells(question, screened)
    inputs = question.inputs
    if inputs.node_ptr is not None:
        return found
    rows = known.nonzero().view(-1)
    columns = telling_features(inputs, question.y, rows, question.quality.classes)
    if columns:
        names = ", ".join(str(column) for column in columns[:_NAMED])
        more = " …" if len(columns) > _NAMED else ""
        text = f"feature {names}{more} (from 0) gives the target away by itself"
        found.append(LeakWarning("feature", text))
    if question.cluster is None:
        found += _of_one_graph(question, isolated)
    return found


def _computable(hops: Mapping[Way, Sequence[float]], least: float) -> list[LeakWarning]:
    """The fewest hops from which a linear function gives the target."""
    exact = [
        (hop, way)
        for way, errors in hops.items()
        for hop, error in enumerate(errors, 1)
        if error <= least
    ]
    if not exact:
        return []
    hop, way = min(exact, key=lambda pair: pair[0])
    text = (
        f"the target is a linear function of {_counted(hop)} ({way.direction}, {way.operator}): "
        "nothing farther away is needed"
    )
    return [LeakWarning("computable", text)]


def _shells(question: Question, screened: Screening) -> list[LeakWarning]:
    """Shells that contain the answer by themselves."""
    spread = 1.0
    if not question.quality.classes:
        values = question.y[question.splits[0].valid].double()
        spread = float((values - values.mean(0)).square().mean()) or 1.0
    for view, score in screened.scores.items():
        error = 1 - score if question.quality.classes else -score / spread
        if view.operator == "shell" and view.alone and error <= _EXACT:
            where = f"exactly {_counted(view.hops)} ({view.direction})"
            return [LeakWarning("shell", f"the nodes at {where} hold the answer by themselves")]
    return []


def _of_one_graph(question: Question, isolated: int) -> list[LeakWarning]:
    """What a split of the nodes of one graph may have wrong with it."""
    inputs, split = question.inputs, question.splits[0]
    found = []
    share, same = twin_share(inputs, split, question.y)
    if share >= _TWINS:
        text = (
            f"{100 * share:.1f} % of the test nodes have a twin among the train nodes, with "
            f"the same features and neighbours; {100 * same:.0f} % of these have its target"
        )
        found.append(LeakWarning("twins", text))
    if isolated:
        text = f"{isolated:,} of {inputs.num_nodes:,} nodes have no neighbour"
        found.append(LeakWarning("isolated", text))
    _, part = connected_components(neighbour_matrix(inputs, "in"), directed=False)
    sizes = np.bincount(part)
    without = sizes > 1
    without[part[split.train.numpy()]] = False
    if without.any():
        text = (
            f"{int(without.sum()):,} connected parts with {int(sizes[without].sum()):,} nodes have "
            "no train node: nothing that is learnt arrives there along edges"
        )
        found.append(LeakWarning("unlabelled_parts", text))
    return found


def _counted(hops: int) -> str:
    return f"{hops} hop{'s' * (hops != 1)}"
