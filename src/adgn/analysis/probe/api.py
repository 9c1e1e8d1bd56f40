"""`adgn.probe`: does the graph matter, in which direction, how far?"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from adgn._util.suggestions import unknown_name
from adgn.analysis.probe.cautions import cautions
from adgn.analysis.probe.findings import Curve, Findings
from adgn.analysis.probe.hops import OPERATORS, HopOperator, reduction
from adgn.analysis.probe.measure import (
    NARROW,
    PATIENCE,
    Fit,
    HopStore,
    Rows,
    Screening,
    Way,
    fits,
    sampled,
    screen,
    within,
)
from adgn.analysis.probe.question import Question, graph_question, task_question
from adgn.analysis.probe.shells import affordable
from adgn.analysis.probe.spread import Resampling, Spread, over_rows, over_splits
from adgn.analysis.probe.structure import agreement, extent, label_distances
from adgn.analysis.probe.suggestion import suggest
from adgn.data import Graph
from adgn.data.own.targets import TargetKind
from adgn.graph.direction import DIRECTIONS, Direction

MOST_HOPS = 10
_EXACT_ROWS = 3000  # train rows up to which wide features are used as they are
_PATIENT_WIDTH, _PATIENT = 32, 5_000_000  # features, and nodes times features: all hops
_ENTRIES = 4_000_000  # of the features of the train rows, at one hop
_SCREENED = Rows(train=1000, valid=5000, test=0)
_SCREENED_NARROW = Rows(train=20_000, valid=10_000, test=0)
_SURELY = 4.0  # standard errors in screening by which a direction loses surely
_LEAST = 0.02  # of the error of the features alone: what the graph has to take away to help
_ENOUGH = 0.98  # of the gain that the best number of hops has


def probe(
    graph: Graph | Data | list[Data] | str,
    *,
    hops: int | None = None,
    directions: Sequence[Direction] | None = None,
    operators: Sequence[HopOperator] | None = None,
    alone: bool | None = None,
    splits: int | None = None,
    kind: TargetKind | None = None,
    metric: str | None = None,
    settings: Sequence[Mapping[str, Any]] = (),
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Findings:
    r"""Whether the graph helps, in which direction and how far, by closed-form models.

    Features are propagated without weights, $\mathbf{P}^k\mathbf{X}$ for $k = 0 \dots K$, and read
    by a ridge regression (of classes one-hot) whose penalty is chosen on the validation rows.
    For each direction the operator is chosen on the first split; its scores are on the test rows of
    all splits.

    Args:
        graph: A [`Graph`][adgn.Graph] with a target, PyG data, or the name of a task.
        hops: $K$. `None`: at most 10, fewer on large graphs where two more add nothing.
        directions: Of `"in"`, `"out"`, `"both"` (in and out side by side) and `"undirected"`;
            `None`: all. An undirected graph has one.
        operators: Of `"mean"`, `"gcn"`, `"sum"`, `"laplacian"` and `"shell"` (nodes at exactly $k$
            hops); `None`: those that are affordable.
        alone: `True`: the features of the last hop alone are read, $\mathbf{P}^k\mathbf{X}$;
            `False`: those of all hops, $[\mathbf{X}, \dots, \mathbf{P}^k\mathbf{X}]$; `None`:
            whichever validates better.
        splits: How many splits: of a task the first ones (`None`: all), of a graph random ones
            (`None`: five).
        kind: Of a graph: `"classification"` or `"regression"`; `None`: by its target.
        metric: Of a graph: what is compared; `None`: as the estimators choose.
        settings: Of a task: sections of its configuration.
        seed: Of random splits and of samples of rows.
        progress: Told what is being done.

    Returns:
        The findings: `print(findings.text())` says them in words.

    Example:
        >>> import adgn
        >>> n = torch.arange(60)
        >>> x = torch.randn(60, 1, generator=torch.Generator().manual_seed(0))
        >>> ring = adgn.Graph.from_arrays(x, [n, (n + 1) % 60], y=x.roll(2)[:, 0].tolist())
        >>> found = adgn.probe(ring)  # the target of a node is the feature two nodes before it
        >>> found.helps, found.direction, found.hops
        (True, 'in', 2)
    """
    started = time.monotonic()
    tell = progress or (lambda text: None)
    _check("directions", directions, DIRECTIONS)
    _check("operators", operators, OPERATORS)
    if hops is not None and (isinstance(hops, bool) or not 1 <= hops <= 100):
        raise ValueError(f"hops={hops!r} is not valid; give a number from 1 to 100")
    if isinstance(graph, str):
        if kind is not None or metric is not None:
            raise ValueError("kind and metric are for a graph; a task has its own")
        question = task_question(graph, splits=splits, settings=settings)
    else:
        if settings:
            raise ValueError("settings are for a task; a graph has none")
        own = graph if isinstance(graph, Graph) else Graph.from_pyg(graph)
        question = graph_question(own, kind=kind, splits=splits, metric=metric, seed=seed)
    return _Probing(question, hops, directions, operators, alone, seed, tell).findings(started)


def _check(name: str, given: Sequence[str] | None, known: Sequence[str]) -> None:
    if given is None:
        return
    if isinstance(given, str) or not len(given):
        raise ValueError(f"{name}={given!r} is not valid; give a list of {', '.join(known)}")
    for value in given:
        if value not in known:
            raise unknown_name(name.removesuffix("s"), value, known)


class _Probing:
    """One run of the probe: what is decided first, and then measured."""

    def __init__(
        self,
        question: Question,
        hops: int | None,
        directions: Sequence[Direction] | None,
        operators: Sequence[HopOperator] | None,
        alone: bool | None,
        seed: int,
        tell: Callable[[str], None],
    ) -> None:
        self.question, self.alone, self.seed, self.tell = question, alone, seed, tell
        inputs, quality = question.inputs, question.quality
        self.notes = list(question.notes)
        train = question.splits[0].train
        width, rows = inputs.x.size(1), train.numel()
        everyone = torch.arange(inputs.num_nodes)
        most = None if rows <= _EXACT_ROWS else NARROW
        nodes = train if inputs.node_ptr is None else everyone
        self.projection = reduction(inputs, nodes, seed, most=most)
        if self.projection is not None:
            self.notes.append(
                f"{width:,} features were projected to their {self.projection.size(1)} leading "
                "directions"
            )
            width = self.projection.size(1)
        narrow = width <= NARROW
        if inputs.directed:
            self.directions = tuple(directions or DIRECTIONS)
        else:
            self.directions = ("undirected",)
        if operators is None:
            found: list[HopOperator] = ["mean", "gcn", "sum"]
            found += ["laplacian"] if narrow else []
            found += ["shell"] if affordable(inputs, width) else []
            self.operators: tuple[HopOperator, ...] = tuple(found)
        else:
            self.operators = tuple(operators)
        self.hops = hops or MOST_HOPS
        self.patient = hops is not None or (
            width <= _PATIENT_WIDTH and inputs.num_nodes * width <= _PATIENT
        )
        self.screened_rows = _SCREENED_NARROW if narrow else _SCREENED
        self.rows = Rows(max(_EXACT_ROWS, min(100_000, _ENTRIES // max(width, 1))), 20_000, 50_000)
        self.parts = [
            sampled(parts, self.rows, seed + place) for place, parts in enumerate(question.splits)
        ]
        if rows > self.rows.train:
            self.notes.append(f"models were fitted on {self.rows.train:,} of {rows:,} train rows")
        self.scale = 1 if quality.higher_is_better else -1

    def findings(self, started: float) -> Findings:
        """Measures and puts together."""
        question = self.question
        inputs, quality = question.inputs, question.quality
        screened = screen(
            question,
            self.directions,
            self.operators,
            hops=self.hops,
            most=self.screened_rows,
            projection=self.projection,
            alone=self.alone,
            patient=self.patient,
            seed=self.seed,
            progress=self.tell,
        )
        curves, own, constant, samples = self._curves(screened)
        chosen = self._chosen(curves, own)
        helps, worth, gain, hops, costs = False, False, None, 0, None
        direction: Direction | None = None
        if chosen is not None:
            way, hops = chosen
            direction = way.direction
            measured = curves[way]
            gain = self._gain(own, measured[hops - 1], samples)
            base = self._error(self._mean_shown(own))
            gone = base - self._error(self._mean_shown(measured[hops - 1]))
            helps = gain.low > 0 and gone >= _LEAST * base
            worth = self._validates(own, measured[hops - 1])
            costs = self._costs_from(hops, measured)
        shown = [self._curve(way, own, found, samples) for way, found in curves.items()]
        self.tell("looking at the structure of the graph")
        size = extent(inputs, self.seed)
        node_level = inputs.node_ptr is None
        known = torch.zeros(inputs.num_rows, dtype=torch.bool)
        for parts in question.splits:
            for rows in (parts.train, parts.valid, parts.test):
                known[rows] = True
        first = question.splits[0]
        own_graphs = question.cluster is not None  # test rows are in graphs of their own
        far = (
            None
            if not node_level or own_graphs
            else label_distances(inputs, first.train, first.test)
        )
        agrees = agreement(inputs, question.y, known, quality.classes) if node_level else None
        best = None if chosen is None else chosen[0]
        return Findings(
            name=question.name,
            level=inputs.level,
            metric=quality.metric,
            higher_is_better=quality.higher_is_better,
            nodes=inputs.num_nodes,
            edges=inputs.edge_index.size(1),
            features=inputs.x.size(1),
            graphs=self._graphs(),
            directed=inputs.directed,
            rows=first.sizes,
            splits=len(question.splits),
            helps=helps,
            gain=gain,
            direction=direction,
            operator=None if best is None else best.operator,
            alone=best is not None and best.alone,
            hops=hops if helps else 0,
            costs_from=costs if helps else None,
            constant=self._spread([c[1] for c in constant], constant[0][0], samples),
            features_only=self._spread(self._shown(own), own[0].outputs, samples),
            curves=tuple(shown),
            screened=screened.scores,
            agreement=agrees,
            extent=size,
            label_distances=far,
            warnings=tuple(
                cautions(
                    question,
                    screened,
                    constant=self._error(float(np.mean([shown for _, shown in constant]))),
                    own=self._error(self._mean_shown(own)),
                    hops={
                        way: [self._error(self._mean_shown(models)) for models in found]
                        for way, found in curves.items()
                    },
                    known=known,
                    isolated=size.isolated,
                )
            ),
            notes=tuple(self.notes),
            suggestion=suggest(screened, worth, direction, hops, inputs.directed),
            seconds=time.monotonic() - started,
        )

    def _graphs(self) -> int:
        if self.question.inputs.node_ptr is not None:
            return self.question.inputs.num_rows
        cluster = self.question.cluster
        return 1 if cluster is None else int(cluster.max()) + 1

    # Measuring.

    def _curves(
        self, screened: Screening
    ) -> tuple[
        dict[Way, list[list[Fit]]], list[Fit], list[tuple[Tensor, float]], Resampling | None
    ]:
        """For each direction's best way, hop by hop from 1, a model of each split."""
        question, quality = self.question, self.question.quality
        together = [part for p in self.parts for part in (p.train, p.valid, p.test)]
        rows = torch.unique(torch.cat(together))
        places = [within(parts, rows) for parts in self.parts]
        train = torch.unique(torch.cat([parts.train for parts in places]))
        store = HopStore(question.inputs, rows, self.projection, self.hops, train)
        y, weight = question.y[rows], question.share(rows)
        own: list[Fit] = []
        constant = []
        for parts in places:
            near = {0: own[0].penalty} if own else {}
            first = Way("in", "mean", False)
            models = fits(store, first, y, parts, quality, weight=weight, first=0, near=near)
            own.append(next(models)[1])
            constant.append(self._constant(y, parts, weight))
        samples = None
        if len(places) == 1:
            test = self.parts[0].test
            cluster = None if question.cluster is None else question.cluster[test]
            share = question.share(test)
            samples = Resampling(question.y[test], quality, share, cluster, self.seed)
        curves: dict[Way, list[list[Fit]]] = {}
        chosen = self._lengths(screened)
        for place, (way, last) in enumerate(chosen):
            curves[way] = [[] for _ in range(last)]
            for number, parts in enumerate(places):
                self.tell(f"direction {way.direction}, split {number + 1} of {len(places)}")
                near = {hop: found[0].penalty for hop, found in enumerate(curves[way], 1) if found}
                models = fits(store, way, y, parts, quality, weight=weight, near=near)
                for found, (_, fit) in zip(curves[way], models, strict=False):
                    found.append(fit)
            if all(later.operator != way.operator for later, _ in chosen[place + 1 :]):
                store.forget(way.operator)
        return curves, own, constant, samples

    def _lengths(self, screened: Screening) -> list[tuple[Way, int]]:
        """For each direction its best way, and up to how many hops it is measured.

        Two hops more than screening found best, where there is no time for all. Where screening
        says that another direction surely wins: the fewest hops within a standard error of its own
        best.
        """
        found = []
        top = screened.best_of()
        for direction in self.directions:
            best = screened.best_of(direction=direction)
            if best is None or top is None:
                continue
            way = Way(best.direction, best.operator, best.alone)
            scores = {hop: screened.scores.get(way.view(hop)) for hop in range(1, self.hops + 1)}
            tried = {hop: score for hop, score in scores.items() if score is not None}
            rows = min(self.question.splits[0].valid.numel(), self.screened_rows.valid)
            error = self.question.quality.standard_error(screened.scores[top], rows)
            last = len(tried) if self.patient else min(len(tried), best.hops + PATIENCE)
            loses = screened.scores[top] - tried[best.hops] > _SURELY * error > 0
            if loses and not self.patient:
                last = min(hop for hop, s in tried.items() if s >= tried[best.hops] - error)
            found.append((way, last))
        return found

    def _constant(self, y: Tensor, parts: Any, weight: Tensor | None) -> tuple[Tensor, float]:
        quality = self.question.quality
        targets = quality.targets(y)[parts.train].double()
        share = targets.new_ones(len(targets)) if weight is None else weight[parts.train]
        mean = share.double() @ targets / share.sum()
        outputs = mean.expand(len(parts.test), -1)
        test_weight = None if weight is None else weight[parts.test]
        if quality.metric == "accuracy":
            # Of several equally frequent classes one would be a guess: the mean over them.
            frequent = (mean >= mean.max() - 1e-12).double()
            hits = frequent[y[parts.test]] / frequent.sum()
            return outputs, float(hits.mean())
        return outputs, quality.shown(outputs, y[parts.test], test_weight)

    def _shown(self, models: Sequence[Fit]) -> list[float]:
        """The metric on the test rows of each split."""
        question = self.question
        return [
            question.quality.shown(fit.outputs, question.y[p.test], question.share(p.test))
            for fit, p in zip(models, self.parts, strict=True)
        ]

    def _mean_shown(self, models: Sequence[Fit]) -> float:
        return float(np.mean(self._shown(models)))

    def _spread(
        self, shown: Sequence[float], outputs: Tensor, samples: Resampling | None
    ) -> Spread:
        if samples is None:
            return over_splits(shown)
        return over_rows(shown[0], samples.shown(outputs))

    def _gain(self, own: Sequence[Fit], best: Sequence[Fit], samples: Resampling | None) -> Spread:
        """How much better, split by split or resample by resample."""
        pairs = zip(self._shown(own), self._shown(best), strict=True)
        differences = [self.scale * (b - a) for a, b in pairs]
        if samples is None:
            return over_splits(differences)
        left, right = samples.shown(own[0].outputs), samples.shown(best[0].outputs)
        return over_rows(differences[0], self.scale * (right - left))

    def _validates(self, own: Sequence[Fit], best: Sequence[Fit]) -> bool:
        """Whether the graph is worth a network that uses it, by validation rows alone.

        Test rows have no say in what is suggested, so that a suggestion may be tested on them. The
        gain has to be above its standard error: over splits, or as a share of the rows.
        """
        top = 1.0 if self.question.quality.classes else 0.0
        alone, with_graph = (float(np.mean([fit.valid for fit in fs])) for fs in (own, best))
        error = _error_of(best, own)
        if len(own) == 1:
            rows = self.parts[0].valid.numel()
            error = self.question.quality.standard_error(with_graph, rows)
        return with_graph - alone >= max(_LEAST * (top - alone), error)

    def _error(self, shown: float) -> float:
        """What is left to be explained, on a scale whose zero is a perfect prediction."""
        if self.question.quality.metric == "log10_mse":
            return float(10**shown)
        return 1 - shown if self.question.quality.higher_is_better else shown

    def _curve(
        self,
        way: Way,
        own: Sequence[Fit],
        found: Sequence[Sequence[Fit]],
        samples: Resampling | None,
    ) -> Curve:
        models = [own, *found]
        return Curve(
            way.direction,
            way.operator,
            way.alone,
            tuple(self._spread(self._shown(fs), fs[0].outputs, samples) for fs in models),
            tuple(float(np.mean([fit.valid for fit in fs])) for fs in models),
        )

    def _chosen(
        self, curves: Mapping[Way, Sequence[Sequence[Fit]]], own: Sequence[Fit]
    ) -> tuple[Way, int] | None:
        """The simplest of the ways and numbers of hops that validate as well as the best one.

        As well is: within a standard error over splits, or with 98 % of the gain. Fewer hops are
        simpler, and then one direction than two.
        """
        every = {
            (way, hop): models
            for way, found in curves.items()
            for hop, models in enumerate(found, 1)
        }
        if not every:
            return None
        valid = {key: float(np.mean([f.valid for f in models])) for key, models in every.items()}
        best = max(valid, key=valid.__getitem__)
        gain = valid[best] - float(np.mean([fit.valid for fit in own]))

        def as_good(key: tuple[Way, int]) -> bool:
            allowed = max((1 - _ENOUGH) * gain, _error_of(every[best], every[key]))
            return valid[best] - valid[key] <= max(allowed, 0.0)

        return min(
            filter(as_good, every),
            key=lambda key: (key[1], key[0].direction == "both", -valid[key]),
        )

    def _costs_from(self, hops: int, found: Sequence[Sequence[Fit]]) -> int | None:
        """The first number of hops from which on validation is surely worse."""
        top = found[hops - 1]
        worse: int | None = None
        for hop in range(len(found), hops, -1):
            models = found[hop - 1]
            gap = float(np.mean([a.valid - b.valid for a, b in zip(top, models, strict=True)]))
            least = 2 * _error_of(top, models) or 0.05 * abs(float(np.mean([f.valid for f in top])))
            if gap <= least:
                break
            worse = hop
        return worse


def _error_of(left: Sequence[Fit], right: Sequence[Fit]) -> float:
    """The standard error of the difference in validation, over splits; 0 of a single one."""
    if len(left) < 2:
        return 0.0
    difference = [a.valid - b.valid for a, b in zip(left, right, strict=True)]
    return float(np.std(difference, ddof=1) / len(difference) ** 0.5)
