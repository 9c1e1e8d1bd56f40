"""From the model section of a configuration to a network, and the memory that it will need."""

from collections.abc import Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

from adgn.nn import GraphNetwork, build_model, model_spec

if TYPE_CHECKING:
    from adgn.training.config import ModelConfig
    from adgn.training.tasks import TaskData, TaskSize

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import nn

from adgn._util.environment import check_memory
from adgn.training.config import ModelConfig, TrainConfig
from adgn.training.readout import REMEMBERED_BYTES
from adgn.training.seeding import own_randomness, resolve_device
from adgn.training.tasks import TaskSize, task_entry

_FLOAT, _DOUBLE = 4, 8
# Numbers that a layer keeps for the gradient, per entry of the states; as measured.
_KEPT = {"appnp": 1.5, "dagnn": 1.0, "dgc": 2.0, "gat": 5.5, "gcn": 2.5, "gcnii": 1.5}
_KEPT |= {"ggnn": 11.0, "gprgnn": 1.5, "h2gcn": 2.0, "mlp": 2.0, "pairnorm": 3.5, "pathgcn": 8.0}
_KEPT |= {"ggcn": 5.5, "sgc": 1.0}
_KEPT_BY_OTHERS = 4.0
_AT_WORK = 10.0  # states, and as much again, of encoder, readout and the layer under way
_GRAM_COPIES = 5.0  # of a ridge: the sums, those of a batch, and what is factored
_BATCHES = 16.0  # of a split, about
_EDGE_BYTES = 100  # of operators, their transposes and what they are made from
_TWO_HOP_BYTES = 60  # per pair two hops apart, as measured
_PLACED_BYTES = 56  # per pair of a graph that is placed in the plane: distances, kernel, indices
_LAYER_BYTES = 20_000  # of a layer's Python objects
_FEW_LAYERS = 8  # so few are counted one by one: not all methods have layers alike
_MOMENTS = {"adam": 2, "adamw": 2, "rmsprop": 2, "sgd": 1}  # tensors like the weights


@dataclass(frozen=True)
class MemoryNeed:
    """The bytes of a run: weights (gradients, optimiser, copies written), states kept, data."""

    weights: float
    states: float
    data: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.states + self.data


def estimate_memory(config: TrainConfig) -> MemoryNeed | None:
    """About how much memory a run needs, within a factor of three; `None` for an unknown task."""
    size_of = task_entry(config.task.name).size
    if size_of is None:
        return None
    size, model = size_of(config), config.model

    def build(layers: int) -> nn.Module:
        return build_network(model.model_copy(update={"num_layers": layers}), size)

    moments = _MOMENTS[config.optimizer.name]
    # Weights, gradients, moments and the best weights; a state is copied and then written as bytes.
    copies = 3 + moments + 2 * (2 + moments)
    if not model.options.get("weight_sharing", True):
        copies += 7  # the weights of all layers side by side, W − Wᵀ − γI, and their gradients
    weights = parameter_bytes(build, model.num_layers, copies)
    return MemoryNeed(weights, _states(model, size), size.data)


def parameter_bytes(build: Callable[[int], nn.Module], num_layers: int, copies: int = 1) -> float:
    """The bytes of a network with `copies` of its parameters; many layers are told by two."""

    def count(layers: int) -> int:
        with torch.device("meta"):
            return sum(weight.numel() for weight in build(layers).parameters())

    # Some modules draw from the generator here too, which may be in use by another thread.
    with own_randomness(0):
        try:
            # A first layer that is the last one too may have other sizes.
            two, three = count(2), count(3)
            if num_layers <= _FEW_LAYERS:
                numbers = float(count(num_layers))
            else:
                numbers = two + (three - two) * (num_layers - 2.0)
        except (RuntimeError, TypeError, OverflowError):  # more numbers than can be counted
            return math.inf
    objects = _LAYER_BYTES if three > two else 0  # else one layer is used again and again
    return _FLOAT * copies * numbers + objects * (num_layers - 1.0)


def _states(model: ModelConfig, size: TaskSize) -> float:
    entries = float(size.nodes) * model.hidden_channels
    if model.options["readout"] == "ridge":  # no gradient, and the Gram matrix in double precision
        read = model.hidden_channels * (1.0 if size.level == "node" else 3.0)
        read *= 2 if model.options["fully_adjacent"] else 1
        moments = _DOUBLE * _GRAM_COPIES * read * read
        # Of one graph the splits share their states; of many graphs those of all are remembered.
        known = min(_FLOAT * entries * _BATCHES, REMEMBERED_BYTES)
        return _FLOAT * entries * _AT_WORK + moments + known + _EDGE_BYTES * size.edges
    kept, layers = _KEPT.get(model.name, _KEPT_BY_OTHERS), float(model.num_layers)
    if model.name == "h2gcn":  # states double with every round, and all of them are read
        layers = 2.0 ** (min(layers, 1000.0) + 1) - 1
    if model.name == "adgn":
        known = model.options["act"] in ("tanh", "relu", "identity", None)
        kept = 1.25 if known and model.options["phi"] in ("sum", "gcn") else 5.0
        if model.options["memory"] == "checkpoint":
            layers = min(layers, 2 * math.sqrt(layers))
    if model.options.get("direction") == "both" and kept > 1.25:  # but for the fused integration
        kept *= 2
    numbers = _FLOAT * entries * (kept * layers + _AT_WORK)
    if model.options["first_dropout"] == "features" and model.options["dropout"] > 0:
        # A mask and what is left, of sparse features no larger than they are.
        numbers += 2 * min(_FLOAT * float(size.nodes) * size.in_channels, size.data)
    return numbers + _EDGE_BYTES * size.edges + _pair_bytes(model.name, size)


def _pair_bytes(model: str, size: TaskSize) -> float:
    """What a method makes of pairs of nodes that are no edges."""
    if model not in ("geomgcn", "h2gcn") or not size.nodes:
        return 0.0
    graph = size.nodes / max(1, size.graphs)
    if model == "geomgcn":  # graphs are placed one after the other
        return _PLACED_BYTES * graph**2
    # Pairs with a common neighbour in a random graph with as many edges.
    degree = size.edges / size.nodes
    return _TWO_HOP_BYTES * size.nodes * graph * -math.expm1(-(degree**2) / graph)


def check_penalties(config: TrainConfig) -> None:
    """Raises where penalties are given without a readout that is solved, or cannot be chosen."""
    penalties, readout = config.optimizer.penalties, config.model.options.get("readout")
    if readout != "ridge":
        if penalties is not None:
            raise ValueError(
                f"optimizer.penalties={list(penalties)} has no effect with model.readout="
                f"{readout!r}; set model.readout=ridge and model.train_recurrent=false, or leave "
                "it out"
            )
        return
    if penalties is not None and not all(penalty >= 0 for penalty in penalties):
        raise ValueError(
            f"optimizer.penalties={list(penalties)} is not valid; give numbers from 0 on"
        )
    if config.stopping.split == "train" and (penalties is None or len(penalties) > 1):
        raise ValueError(
            "model.readout='ridge' chooses its penalty on validation rows, but stopping.split="
            "'train'; set stopping.split=val, or a single penalty: optimizer.penalties=[1e-6]"
        )


def check_run_memory(
    config: TrainConfig, runs: int = 1, ranks: int = 1, shards: bool = False
) -> None:
    """Raises `NotEnoughMemoryError` where so many runs at a time need more than there is.

    With several `ranks`, where one of them does: each has its share of the states, and with
    `shards` of the data.
    """
    need = estimate_memory(config)
    if need is None:
        return
    need = replace(need, states=need.states / ranks, data=need.data / (ranks if shards else 1))
    model = config.model
    parts = ((need.weights, "weights"), (need.states, "states of a batch"), (need.data, "data"))
    what = (
        f"{config.task.name} with {model.name}, hidden_channels={model.hidden_channels} and "
        f"num_layers={model.num_layers} (most of it for {max(parts)[1]})"
    )
    if runs > 1:
        what = f"{runs} times {what}"
    device = resolve_device(config.device)
    if device.type == "cuda":
        check_memory(need.total, f"on {device} {what}", torch.cuda.mem_get_info(device)[0])
        check_memory(runs * need.data, what)
    else:
        check_memory(runs * need.total, what)


def model_options(name: str) -> list[str]:
    """The names of a model's options."""
    return list(model_spec(name).options.model_fields)


def check_model_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A model's options, checked, with defaults filled in."""
    spec = model_spec(name)
    fields = spec.options.model_fields
    given = {
        key: None if value == "none" and _may_be_none(fields, key) else value
        for key, value in options.items()
    }
    for key, value in given.items():
        if not _is_plain(value):
            raise ValueError(
                f"{key} is a {type(value).__name__}; a configuration holds names and numbers that "
                "can be written down. For a module of your own build the model and use Trainer"
            )
    parsed = spec.parse(given)
    return {key: getattr(parsed, key) for key in fields}


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, bool | int | float | str)


def _may_be_none(fields: Mapping[str, Any], key: str) -> bool:
    kinds = get_args(fields[key].annotation) if key in fields else ()
    return NoneType in kinds and not any("none" in get_args(kind) for kind in kinds)


def build_network(config: "ModelConfig", data: "TaskData | TaskSize") -> GraphNetwork:
    """The network of a model section, for a task's features and outputs."""
    encoder, embeddings = config.options["encoder"], data.embeddings
    if (encoder == "embedding") != (embeddings is not None):
        numbers, integers = "numbers, use 'linear' or 'none'", "integers, use 'embedding'"
        kind = numbers if embeddings is None else integers
        raise ValueError(
            f"model.encoder={encoder!r} does not fit the task: its features are {kind}"
        )
    options = dict(config.options)
    if data.fully_adjacent:
        options["fully_adjacent"] = True
    return build_model(
        config.name,
        data.in_channels if embeddings is None else embeddings,
        config.hidden_channels,
        data.out_channels,
        config.num_layers,
        level=data.level,
        **options,
    )
