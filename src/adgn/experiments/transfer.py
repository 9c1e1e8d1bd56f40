"""How far does a number travel? Graph transfer for several distances and models."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from adgn.analysis import weight_gradients
from adgn.data import GraphTransfer
from adgn.graph import GraphBlocks
from adgn.nn import GraphNetwork, model_spec
from adgn.training import Callback, LearnedNothingWarning, RunResult, train
from adgn.training.config import merged

DISTANCES = (5, 10, 20, 50)
# A plain GCN alone would be too weak a rival: with residual connections and normalisation it is
# the strongest of the simple ones.
CONTENDERS: dict[str, dict[str, Any]] = {
    "adgn": {"name": "adgn"},
    "gcn-residual": {"name": "gcn", "residual": True, "norm": "batch"},
    "gcn": {"name": "gcn"},
}
MODELS = tuple(CONTENDERS)


@dataclass(frozen=True)
class TransferOutcome:
    """What one model did at one distance."""

    model: str  # a name of `CONTENDERS`, or of a registered model
    distance: int  # edges between the two ends of the line
    num_layers: int  # the same for all models
    error: float  # the mean squared error on test lines
    validation: float  # that on validation lines, of which settings may be chosen
    constant: float  # that of always answering the mean
    gradient: Tensor  # the norm of the loss's gradient in the weights of each layer
    epochs: int
    seconds: float

    @property
    def title(self) -> str:
        """The model's name in tables and figures."""
        return contender_title(self.model)

    @property
    def solved(self) -> bool:
        """Whether more than nine tenths of the constant answer's error are gone."""
        return self.error < 0.1 * self.constant


def contender_title(model: str) -> str:
    """The name of a contender, or of a registered model, in tables and figures."""
    settings = _settings(model)
    title = model_spec(settings["name"]).title
    return f"{title}, residual and norm" if settings.get("residual") else title


def _settings(model: str) -> dict[str, Any]:
    return CONTENDERS.get(model, {"name": model})


Callbacks = Callable[[str], AbstractContextManager[Sequence[Callback]]]


def run_transfer(
    distances: Sequence[int] = DISTANCES,
    models: Sequence[str] = MODELS,
    *,
    epochs: int = 10,
    seed: int = 0,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    callbacks_for: Callbacks = lambda _: nullcontext(()),
) -> Iterator[TransferOutcome]:
    """Trains each model at each distance, with the same depth, width, data and optimiser.

    Args:
        distances: Edges between the two ends of the line.
        models: Names of `CONTENDERS`, or of registered models.
        epochs: Passes over the train lines.
        seed: Of weights and data.
        settings: Other settings of `train` for all models, by section, such as
            `{"optimizer": {"lr": 0.01}}`.
        callbacks_for: The callbacks of a training, by what is trained.
    """
    for distance in distances:
        for model in models:
            with (
                callbacks_for(f"{model}, distance {distance}") as callbacks,
                warnings.catch_warnings(),
            ):
                # That a model learns no more than a constant is what the outcome shows.
                warnings.simplefilter("ignore", LearnedNothingWarning)
                own = {
                    "task": {"distance": distance},
                    "model": _settings(model),
                    "loop": {"max_epochs": epochs, "evaluate_every": 5},
                }
                all_settings: dict[str, Any] = merged(own, settings or {})
                result = train("graph-transfer", seed=seed, callbacks=callbacks, **all_settings)
            yield _outcome(result, model, distance)


def _outcome(result: RunResult, model: str, distance: int) -> TransferOutcome:
    network = result.model
    if not isinstance(network, GraphNetwork):
        raise TypeError(f"{model} is a {type(network).__name__}; expected a GraphNetwork")
    packed = GraphTransfer("line", distance, "test").packed
    batch = packed.batch()
    graphs = GraphBlocks(batch.edge_index, batch.ptr)

    def loss(output: Tensor) -> Tensor:
        return nn.functional.mse_loss(output[batch.mask], batch.y)

    every = graphs.select(batch.ptr.new_tensor(range(len(packed))))
    return TransferOutcome(
        model=model,
        distance=distance,
        num_layers=result.config.model.num_layers,
        error=math.pow(10, result.scores["test"]["log10_mse"]),
        validation=math.pow(10, result.scores["val"]["log10_mse"]),
        constant=math.pow(10, result.constant["log10_mse"]),
        gradient=weight_gradients(network, batch.x, every, loss).norms,
        epochs=result.epochs,
        seconds=result.seconds,
    )
