"""What all estimators share: from a graph to a fitted model, and from there to predictions."""

import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from torch import Tensor
from torch.nn.functional import pad

from adgn.analysis.probe.measure import Screening
from adgn.data import Graph, GraphInputError, Preprocessing, TargetEncoder
from adgn.data.own.inputs import Inputs
from adgn.data.own.splits import Parts, nodes_of, split_rows
from adgn.data.own.targets import TargetKind
from adgn.estimators.candidates import (
    Candidate,
    closed_form_views,
    default_candidates,
    named_candidates,
)
from adgn.estimators.explanation import Explanation, explain_row
from adgn.estimators.folder import save_model
from adgn.estimators.members import averaged, calibrated, greedy_weights, notes_on_fa
from adgn.estimators.ridge import quick_probe
from adgn.estimators.rows import (
    as_graph,
    described,
    is_graph,
    plain,
    reading_of,
    row_of,
    row_positions,
    target_names,
    transforms_for,
    with_known,
)
from adgn.estimators.scoring import class_scores, value_scores
from adgn.estimators.training import (
    Attempt,
    Problem,
    fit_closed_form,
    search,
    train_candidate,
)
from adgn.graph import OperatorDirection
from adgn.nn.network import Level
from adgn.training import Callback
from adgn.training.quality import Quality, choose_metric
from adgn.transforms import TransformLike

_SEARCHED = 2  # how many of the best networks a search goes around
_LEAST_SEARCH = 2.0  # seconds


class NotFittedError(ValueError, AttributeError):
    """The estimator was asked for something that `fit` makes."""


class GraphEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Fits, predicts and scores on a graph; see the four estimators for what each predicts."""

    kind: TargetKind
    level: Level
    _tried: list[dict[str, Any]]  # of a model that was loaded

    def __init__(
        self,
        *,
        graph: Graph | None = None,
        model: str | None = None,
        model_options: Mapping[str, Any] | None = None,
        direction: OperatorDirection | None = None,
        transform: TransformLike = None,
        settings: Mapping[str, Any] | None = None,
        metric: str | None = None,
        validation_size: float = 0.2,
        test_size: float = 0.0,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "cpu",
    ) -> None:
        self.graph = graph
        self.model = model
        self.model_options = model_options
        self.direction = direction
        self.transform = transform
        self.settings = settings
        self.metric = metric
        self.validation_size = validation_size
        self.test_size = test_size
        self.random_state = random_state
        self.device = device

    def __sklearn_clone__(self) -> "GraphEstimator":
        """An unfitted estimator with the same parameters; the graph is shared, not copied."""
        return type(self)(**self.get_params(deep=False))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "members_")

    # Fitting.

    def fit(
        self,
        X: Any = None,
        y: Any = None,
        *,
        nodes: Any = None,
        minutes: float | None = None,
        run_dir: str | Path | None = None,
        callbacks: Sequence[Callback] = (),
        progress: Callable[[str], None] | None = None,
    ) -> "GraphEstimator":
        """Fits a model.

        Args:
            X: The graph: a [`Graph`][adgn.Graph] or PyG data. Or, where the estimator has a
                `graph`, positions of its rows (nodes, or whole graphs), as scikit-learn's
                `cross_val_score` gives them. `None`: the estimator's graph.
            y: Targets: of all rows of a graph, or of the positions. `None`: the graph's own.
            nodes: Positions of rows, or a mask, that alone may be learnt from; all by default.
            minutes: Time for a search around the best models, all other work included. `None`: no
                search, the default models alone. One model is trained whole however short the time
                is; `notes_` says by how much it was exceeded.
            run_dir: A folder for the run of each network. Called again with the same data and
                parameters, `fit` goes on where it was stopped.
            callbacks: Told about every step and epoch of the networks.
            progress: Told, in words, what is being done.

        Raises:
            GraphInputError: The data cannot be learnt from; the message says why and what to do.
        """
        started = time.monotonic()
        if minutes is not None and not minutes > 0:
            raise ValueError(f"minutes={minutes!r} is not valid; give a positive number, or None")
        deadline = math.inf if minutes is None else started + 60 * minutes
        tell = progress or (lambda text: None)
        transforms_for(self.transform, self.level)  # a wrong name is told before any work
        graph, rows = self._training_data(X, y, nodes)
        seed = self._seed()
        problem, preprocessing = self._problem(graph, rows, seed)
        self.preprocessing_ = preprocessing  # known to whoever is told of the progress
        tell(f"{problem.parts.sizes[0]} {self.level}s train, {problem.parts.sizes[1]} validate")
        attempts: list[Attempt] = []
        found: Screening | None = None
        if self.model is None:
            found = quick_probe(problem.inputs, problem.y, problem.parts, problem.quality, seed)
            for view in closed_form_views(found):
                if not attempts or time.monotonic() <= deadline:
                    attempts.append(fit_closed_form(problem, view, found.projection))
        candidates = self._candidates(problem, found)
        with tempfile.TemporaryDirectory() as temporary:
            folder = None if run_dir is None else Path(run_dir)
            for candidate in candidates:
                if attempts and time.monotonic() > deadline:
                    break
                tell(f"training {candidate.name}")
                attempts.append(
                    train_candidate(
                        problem,
                        candidate,
                        folder=folder,
                        deadline=deadline if attempts else math.inf,
                        callbacks=callbacks,
                    )
                )
            if minutes is not None:
                place = folder or Path(temporary)
                attempts += self._search(problem, candidates, attempts, place, deadline, tell)
        self._finish(graph, problem, attempts, found)
        self.seconds_ = time.monotonic() - started
        over = time.monotonic() - deadline
        if minutes is not None and over > 6 * minutes:  # a tenth of the time
            self.notes_ += (
                f"fit took {self.seconds_:.1f} s, {over:.1f} s more than minutes={minutes:g} "
                "allow: one model is trained whole in any case",
            )
        return self

    def _inputs_of(self, graph: Graph, preprocessing: Preprocessing) -> Inputs:
        return Inputs.of(graph, preprocessing, transforms_for(self.transform, self.level))

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _training_data(self, X: Any, y: Any, nodes: Any) -> tuple[Graph, Tensor | None]:
        if X is None or not is_graph(X):
            if self.graph is None:
                given = "nothing" if X is None else f"a {type(X).__name__}"
                raise TypeError(
                    f"fit was given {given}; give an adgn.Graph or PyG data, or make the estimator "
                    "with graph=… and give positions of its rows"
                )
            graph = as_graph(self.graph, self.level)
            if X is None:
                graph = graph if y is None else graph.with_target(y, target_names(graph))
            else:
                rows = row_positions(X, graph)
                if y is not None:
                    graph = with_known(graph, rows, y, target_names(graph))
                return replace(graph, split=None), rows
        else:
            graph = as_graph(X, self.level)
            graph = graph if y is None else graph.with_target(y, target_names(graph))
        return graph, None if nodes is None else row_positions(nodes, graph)

    def _problem(
        self, graph: Graph, rows: Tensor | None, seed: int
    ) -> tuple[Problem, Preprocessing]:
        shares = {"validation_size": self.validation_size, "test_size": self.test_size}
        if self.kind == "classification":
            encoder = TargetEncoder.fit(graph, kind=self.kind)
            y = encoder.encode(graph)
            parts = split_rows(graph, y, rows=rows, seed=seed, **shares)
        else:
            parts = split_rows(graph, None, rows=rows, seed=seed, **shares)
            encoder = TargetEncoder.fit(graph, rows=parts.train, kind=self.kind)
            y = encoder.encode(graph)
        preprocessing = Preprocessing.fit(graph, rows=nodes_of(graph, parts.train))
        metric = choose_metric(self.kind, self.metric, y[parts.train], y[parts.valid])
        problem = Problem(
            inputs=self._inputs_of(graph, preprocessing),
            y=y,
            parts=parts,
            encoder=encoder,
            quality=Quality(metric, len(encoder.classes)),
            row_weight=self._row_weight(y, parts, encoder),
            seed=seed,
            device=self.device,
            settings=plain(self.settings or {}),
        )
        return problem, preprocessing

    def _row_weight(self, y: Tensor, parts: Parts, encoder: TargetEncoder) -> Tensor | None:
        """How much each row counts in the loss; all alike unless classes have weights."""
        return None

    def _candidates(self, problem: Problem, found: Screening | None) -> list[Candidate]:
        if found is not None:
            if self.model_options:
                raise ValueError(
                    "model_options are given without a model; name it: model='adgn', …"
                )
            rows = problem.parts.train.numel()
            chosen = default_candidates(problem.inputs, found, problem.monitor, rows)
            if self.direction is None:
                return chosen
            return [replace(candidate, direction=self.direction) for candidate in chosen]
        options, direction = plain(self.model_options or {}), self.direction or "in"
        return named_candidates(self.model or "adgn", options, direction)

    def _search(
        self,
        problem: Problem,
        candidates: Sequence[Candidate],
        attempts: Sequence[Attempt],
        folder: Path,
        deadline: float,
        tell: Callable[[str], None],
    ) -> list[Attempt]:
        """Searches around the best networks, each with an equal part of the time that is left."""
        score = {a.name: a.score for a in attempts if a.score is not None}
        best = sorted((c for c in candidates if c.name in score), key=lambda c: -score[c.name])
        found = []
        for place, candidate in enumerate(best[:_SEARCHED]):
            now = time.monotonic()
            until = now + (deadline - now) / (min(_SEARCHED, len(best)) - place)
            if until - now > _LEAST_SEARCH:
                found.append(search(problem, candidate, folder, until, progress=tell))
        return found

    def _finish(
        self,
        graph: Graph,
        problem: Problem,
        attempts: Sequence[Attempt],
        found: Screening | None,
    ) -> None:
        valid = problem.parts.valid
        trained = [a.member for a in attempts if a.member is not None]
        if not trained:
            reasons = "; ".join(f"{a.name}: {a.note}" for a in attempts)
            raise ValueError(f"no model could be trained ({reasons})")
        outputs = [member.outputs(problem.inputs) for member in trained]
        if problem.quality.classes:
            trained = [
                calibrated(member, output[valid], problem.y[valid])
                for member, output in zip(trained, outputs, strict=True)
            ]
            outputs = [o / m.temperature for o, m in zip(outputs, trained, strict=True)]
        weights = greedy_weights([o[valid] for o in outputs], problem.y[valid], problem.quality)
        share = {member.name: weight for member, weight in zip(trained, weights, strict=True)}
        self.attempts_ = [replace(a, weight=share.get(a.name, 0.0)) for a in attempts]
        self.members_ = [replace(m, weight=share[m.name]) for m in trained if share[m.name] > 0]
        self.encoder_ = problem.encoder
        self.quality_ = problem.quality
        self.problem_ = problem
        self.parts_ = problem.parts
        self.sizes_ = problem.parts.sizes
        self.split_rule_ = problem.parts.rule
        self.data_ = described(graph)
        self.probe_ = found
        self.graph_ = graph
        self.inputs_ = problem.inputs
        self.n_features_in_ = problem.inputs.x.size(1)
        self.reading_ = reading_of(graph, self.preprocessing_, problem.encoder)
        self.notes_ = (*graph.notes, *problem.notes, *notes_on_fa(self.members_, problem.inputs))
        if self.kind == "classification":
            self.classes_ = np.asarray(problem.encoder.classes)
        kept = [o for o, weight in zip(outputs, weights, strict=True) if weight > 0]
        self._average = averaged(kept, [m.weight for m in self.members_], problem.quality)
        self.validation_scores_ = self._scores(self._average[valid], problem.y[valid])
        tested = problem.parts.test
        self.test_scores_ = (
            self._scores(self._average[tested], problem.y[tested]) if tested.numel() else {}
        )

    def tried(self) -> list[dict[str, Any]]:
        """All models that were tried, as rows of a table.

        Returns:
            For each: `name`, `direction`, `score` (on the validation rows, higher is better),
            `weight` in the average, `epochs`, `seconds` and `note`.
        """
        self._fitted()
        if not hasattr(self, "attempts_"):
            return [dict(row) for row in self._tried]
        return [
            {
                "name": attempt.name,
                "direction": attempt.direction,
                "score": attempt.score,
                "weight": attempt.weight,
                "epochs": attempt.epochs,
                "seconds": round(attempt.seconds, 3),
                "note": attempt.note,
            }
            for attempt in self.attempts_
        ]

    # Predicting.

    def _fitted(self) -> None:
        if not hasattr(self, "members_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit(graph) first"
            )

    def _resolved(self, X: Any) -> tuple[Graph, Tensor, Tensor | None]:
        """The graph, the averaged outputs of all its rows, and which rows are meant."""
        self._fitted()
        known: Graph | None = getattr(self, "graph_", None)
        if X is not None and is_graph(X):
            graph = as_graph(X, self.level, self.preprocessing_.directed)
            if graph is not known:
                return graph, self._average_of(self._inputs_of(graph, self.preprocessing_)), None
            return graph, self._average, None
        if known is None:
            raise TypeError(
                "a loaded model does not have the graph that it was trained on; give the graph"
            )
        return known, self._average, None if X is None else row_positions(X, known)

    def _average_of(self, inputs: Inputs) -> Tensor:
        outputs = [member.outputs(inputs) for member in self.members_]
        return averaged(outputs, [member.weight for member in self.members_], self.quality_)

    def _outputs(self, X: Any) -> Tensor:
        _, average, rows = self._resolved(X)
        return average if rows is None else average[rows]

    def predict(self, X: Any = None) -> NDArray[Any]:
        """The predicted class or value of each row.

        Args:
            X: A graph, known or new (new nodes and edges need no training); or positions of rows
                of the graph that was fitted. `None`: all rows of that graph.

        Returns:
            `[rows]` classes or values, or `[rows, targets]` values.
        """
        outputs = self._outputs(X)
        if self.kind == "classification":
            labels: NDArray[Any] = self.classes_[outputs.argmax(-1).numpy()]
            return labels
        values = np.asarray(self.encoder_.decode(outputs))
        return values[:, 0] if values.shape[1] == 1 else values

    def predictions(self, X: Any = None) -> pa.Table:
        """The predictions as a table with the user's ids.

        Returns:
            `id`; `prediction` (with several targets one column for each, by its name); of classes
            also `probability`, that of the predicted class, and one column for each class.
        """
        graph, average, rows = self._resolved(X)
        chosen = torch.arange(len(average)) if rows is None else rows
        average = average[chosen]
        columns: dict[str, Any] = {"id": graph.row_ids.take(pa.array(chosen.numpy()))}
        if self.kind == "classification":
            best, place = average.max(dim=-1)
            columns["prediction"] = self.encoder_.decode(place)
            columns["probability"] = pa.array(best.numpy())
            for number, label in enumerate(self.encoder_.classes):
                columns[f"probability of {label}"] = pa.array(average[:, number].numpy())
            return pa.table(columns)
        values = np.asarray(self.encoder_.decode(average))
        names = self.encoder_.names if values.shape[1] > 1 else ("prediction",)
        for number, name in enumerate(names):
            columns[name] = pa.array(values[:, number])
        return pa.table(columns)

    # Scoring.

    def scores(self, X: Any = None, y: Any = None) -> dict[str, float]:
        """All scores.

        Args:
            X: A graph, or positions of rows of the graph that was fitted. `None`: the test rows.
            y: The targets; `None`: the graph's own. Rows without a target are left out. Given with
                positions, a class that no train row had has the probability 0.

        Returns:
            Of classes `accuracy`, `macro_f1`, `roc_auc`, `average_precision` and `log_loss`; of
            values `r2`, `mse`, `mae`, in the unit of the target.
        """
        self._fitted()
        if X is None and y is None:
            if not self.test_scores_:
                raise ValueError(
                    "there are no test rows: give X, or fit with a column of splits or test_size=…"
                )
            return dict(self.test_scores_)
        graph, average, rows = self._resolved(X)
        if y is not None:
            if rows is None:
                graph = graph.with_target(y, self.encoder_.names)
            else:
                graph = with_known(graph, rows, y, self.encoder_.names)
        encoder = self.encoder_
        if y is not None and rows is not None:  # of a fold of scikit-learn
            encoder = encoder.with_classes_of(graph)
            average = pad(average, (0, encoder.num_outputs - average.size(1)))
        known = graph.labelled if rows is None else rows
        known = known[torch.isin(known, graph.labelled)]
        if not known.numel():
            raise GraphInputError(f"no row of {graph.origin} that is to be scored has a target")
        return self._scores(average[known], encoder.encode(graph)[known])

    def _scores(self, average: Tensor, y: Tensor) -> dict[str, float]:
        if self.kind == "classification":
            return class_scores(average, y)
        decode = self.encoder_.decode
        return value_scores(np.asarray(decode(average)), np.asarray(decode(y)))

    def score(self, X: Any = None, y: Any = None) -> float:
        """The accuracy, or of values $R^2$ (of several targets their mean); see `scores`."""
        scores = self.scores(X, y)
        return scores["accuracy" if self.kind == "classification" else "r2"]

    # Explaining and keeping.

    def explain(self, row: Any, X: Any = None, *, probes: int | None = 8) -> Explanation:
        """Which nodes, and which distances, the prediction of a node depends on.

        Args:
            row: The id of the node (of a graph, where whole graphs are predicted); in many graphs
                `"graph/id"`, where several nodes have the id.
            X: The graph; `None`: the one that was fitted.
            probes: Random probes of the sensitivity; `None`: exactly, which takes longer.
        """
        graph, average, _ = self._resolved(X)
        known = graph is getattr(self, "graph_", None)
        inputs = self.inputs_ if known else self._inputs_of(graph, self.preprocessing_)
        place = row_of(graph, row)
        return explain_row(graph, inputs, self.members_, average, place, probes=probes)

    def save(self, path: str | Path) -> Path:
        """Writes the model into a folder, which [`adgn.load`][adgn.load] reads.

        Weights are safetensors, all else is JSON; README.md is a model card, so that
        `huggingface_hub.upload_folder(folder_path=path, …)` publishes the model.

        Args:
            path: A folder; made if it is not there. A model that is there is replaced.
        """
        self._fitted()
        return save_model(self, Path(path))
