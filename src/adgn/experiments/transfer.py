"""How far does a number travel? Graph transfer for several distances and models."""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from torch import Tensor, nn

from adgn.analysis import weight_gradients
from adgn.data import GraphTransfer
from adgn.graph import GraphBlocks
from adgn.nn import GraphNetwork
from adgn.training import Callback, LearnedNothingWarning, RunResult, train

DISTANCES = (5, 10, 20, 50)
MODELS = ("adgn", "gcn")


@dataclass(frozen=True)
class TransferOutcome:
    """What one model did at one distance."""

    model: str
    distance: int  # edges between the two ends of the line
    num_layers: int  # the same for all models
    error: float  # the mean squared error on test lines
    constant: float  # that of always answering the mean
    gradient: Tensor  # the norm of the loss's gradient in the weights of each layer
    epochs: int
    seconds: float

    @property
    def solved(self) -> bool:
        """Whether more than nine tenths of the constant answer's error are gone."""
        return self.error < 0.1 * self.constant


Callbacks = Callable[[str], AbstractContextManager[Sequence[Callback]]]


def run_transfer(
    distances: Sequence[int] = DISTANCES,
    models: Sequence[str] = MODELS,
    *,
    epochs: int = 10,
    seed: int = 0,
    callbacks_for: Callbacks = lambda _: nullcontext(()),
) -> Iterator[TransferOutcome]:
    """Trains each model at each distance, with the same depth, width, data and optimiser."""
    for distance in distances:
        for model in models:
            with (
                callbacks_for(f"{model}, distance {distance}") as callbacks,
                warnings.catch_warnings(),
            ):
                # That a model learns no more than a constant is what the outcome shows.
                warnings.simplefilter("ignore", LearnedNothingWarning)
                result = train(
                    "graph-transfer",
                    task={"distance": distance},
                    model={"name": model},
                    loop={"max_epochs": epochs, "evaluate_every": 5},
                    seed=seed,
                    callbacks=callbacks,
                )
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
        constant=math.pow(10, result.constant["log10_mse"]),
        gradient=weight_gradients(network, batch.x, every, loss).norms,
        epochs=result.epochs,
        seconds=result.seconds,
    )
