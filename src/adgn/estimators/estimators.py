"""The four estimators."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from torch import Tensor

from adgn.data import Graph, TargetEncoder
from adgn.data.own.splits import Parts
from adgn.estimators.base import GraphEstimator
from adgn.graph import OperatorDirection
from adgn.transforms import TransformLike

ClassWeight = Literal["balanced"] | Mapping[Any, float] | None


class _Classifier(ClassifierMixin, GraphEstimator):  # type: ignore[misc]
    """What classifiers have besides: class weights and probabilities."""

    kind = "classification"
    score = GraphEstimator.score  # not the mixin's, which knows no held-out rows

    def __init__(
        self,
        *,
        graph: Graph | None = None,
        model: str | None = None,
        model_options: Mapping[str, Any] | None = None,
        direction: OperatorDirection | None = None,
        transform: TransformLike = None,
        settings: Mapping[str, Any] | None = None,
        class_weight: ClassWeight = None,
        metric: str | None = None,
        validation_size: float = 0.2,
        test_size: float = 0.0,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "cpu",
    ) -> None:
        super().__init__(
            graph=graph,
            model=model,
            model_options=model_options,
            direction=direction,
            transform=transform,
            settings=settings,
            metric=metric,
            validation_size=validation_size,
            test_size=test_size,
            random_state=random_state,
            device=device,
        )
        self.class_weight = class_weight

    def predict_proba(self, X: Any = None) -> NDArray[np.float64]:
        """The probability of each class, `[rows, classes]`, in the order of `classes_`.

        Args:
            X: As of `predict`.
        """
        probability: NDArray[np.float64] = self._outputs(X).numpy()
        return probability

    def _row_weight(self, y: Tensor, parts: Parts, encoder: TargetEncoder) -> Tensor | None:
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, Mapping):
            unknown = [label for label in self.class_weight if label not in encoder.classes]
            if unknown:
                known = ", ".join(map(repr, encoder.classes[:10]))
                raise ValueError(f"class_weight has {unknown[0]!r}, which is no class of {known}")
            weight = torch.tensor(
                [float(self.class_weight.get(label, 1.0)) for label in encoder.classes]
            )
            if not bool((weight > 0).all() and torch.isfinite(weight).all()):
                raise ValueError(f"class_weight={self.class_weight!r} has a weight that is not > 0")
        elif self.class_weight == "balanced":
            count = torch.bincount(y[parts.train], minlength=len(encoder.classes))
            weight = len(parts.train) / (len(count) * count.clamp(min=1).float())
        else:
            raise ValueError(
                f"class_weight={self.class_weight!r} is not valid; give 'balanced', weights by "
                "class, or None"
            )
        return weight[y.clamp(min=0)]


class NodeClassifier(_Classifier):
    """Predicts the class of nodes.

    `fit(graph)` looks at the data and needs nothing else. It splits the labelled nodes, compares
    closed-form models on the features of a node and of its neighbours in each direction, trains
    a few networks that listen where this found most, and averages the models that together validate
    best. `attempts_` has them all.

    Args:
        graph: Where `fit` is given positions of nodes rather than a graph: theirs. So
            scikit-learn's tools work: `cross_val_score(NodeClassifier(graph=g), positions, y)`.
        model: A registered method, trained alone; `"adgn-reservoir"` (A-DGN with random weights)
            and `"gesn"` are solved in closed form, in seconds. `None`: chosen as above.
        model_options: Its options, and `hidden_channels` and `num_layers`.
        direction: `"in"`: a node hears the sources of its incoming edges; `"out"`: the targets of
            its outgoing ones; `"undirected"`: both. `None`: chosen; with a `model`, `"in"`.
        transform: Transforms of the graph before any model sees it, and of each graph that is
            predicted: `"undirected"`, `"digl:k=16"`, `["undirected", "sdrf"]`, see
            [`resolve_transforms`][adgn.transforms.resolve_transforms]. With `"fa"` the last layer
            of networks is on the complete graph.
        settings: Further settings of the training: `{"loop": {"max_epochs": 100}}`.
        class_weight: `"balanced"`: classes count alike, however rare; or a weight for each class.
        metric: What validation compares: `"accuracy"`, `"macro_f1"`, `"roc_auc"`,
            `"average_precision"` or `"log_loss"`. `None`: accuracy, or, where one of two classes
            has less than a tenth of the nodes, average precision.
        validation_size: The share of labelled nodes that validates, where the graph does not say.
        test_size: The share that is held out for `score()`.
        random_state: Of the split, initial weights, order and dropout. The same number gives the
            same model.
        device: Where networks are trained.

    Attributes:
        classes_: The classes.
        attempts_: All models that were tried, with validation score, time and weight.
        members_: Those that are averaged.
        parts_: Which nodes trained, validated and were held out.
        validation_scores_, test_scores_: All scores on these.
        preprocessing_: What became of the columns: `preprocessing_.decisions()`.
        reading_: Arguments with which `Graph.from_tables` and its like read new data as the
            training data was read.
        notes_: What was left out, joined or assumed.

    Example:
        >>> import adgn
        >>> colours = [n // 10 for n in range(20)]  # two groups, and nearly all edges within them
        >>> edges = [[n for n in range(19)], [n + 1 for n in range(19)]]
        >>> x = [[(n * 7) % 5, float(n > 9)] for n in range(20)]
        >>> graph = adgn.Graph.from_arrays(x, edges, y=colours[:16] + [None] * 4)
        >>> model = adgn.NodeClassifier(settings={"loop": {"max_epochs": 20}}).fit(graph)
        >>> model.predict()[-4:]
        array([1, 1, 1, 1])
    """

    level = "node"


class GraphClassifier(_Classifier):
    """Predicts the class of whole graphs; arguments as of [`NodeClassifier`][adgn.NodeClassifier].

    Example:
        >>> import adgn, torch
        >>> from torch_geometric.data import Data
        >>> x = torch.tensor([[0.0], [1.0]] * 10).repeat_interleave(3, dim=0)
        >>> owner = torch.arange(20).repeat_interleave(3)
        >>> edges = torch.tensor([[3 * g, 3 * g + 1] for g in range(20)]).t()
        >>> graphs = adgn.Graph.from_arrays(
        ...     x, edges, y=[0, 1] * 10, graph_of_node=owner, level="graph"
        ... )
        >>> model = adgn.GraphClassifier(settings={"loop": {"max_epochs": 20}}).fit(graphs)
        >>> model.predict()[:4]
        array([0, 1, 0, 1])
    """

    level = "graph"


class _Regressor(RegressorMixin, GraphEstimator):  # type: ignore[misc]
    """What regressors have in common."""

    kind = "regression"
    score = GraphEstimator.score  # not the mixin's, which knows no held-out rows


class NodeRegressor(_Regressor):
    """Predicts one or several values of nodes; arguments as of `NodeClassifier`.

    Targets are standardised while training and predictions are in their unit. `metric` is `"r2"`
    (the default), `"mse"` or `"mae"`; `score` is R².

    Example:
        >>> import adgn
        >>> x = [[float(n)] for n in range(30)]
        >>> edges = [list(range(29)), list(range(1, 30))]
        >>> graph = adgn.Graph.from_arrays(x, edges, y=[3.0 * n for n in range(30)])
        >>> model = adgn.NodeRegressor(settings={"loop": {"max_epochs": 20}}).fit(graph)
        >>> model.validation_scores_["r2"] > 0.99
        True
    """

    level = "node"


class GraphRegressor(_Regressor):
    """Predicts one or several values of whole graphs; arguments as of `NodeRegressor`."""

    level = "graph"
