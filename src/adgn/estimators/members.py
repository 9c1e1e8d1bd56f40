"""The models that a fitted estimator averages: networks and closed-form ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from adgn.data.own.inputs import Inputs, direction_read
from adgn.estimators.ridge import RidgeModel
from adgn.graph import GraphBlocks, OperatorDirection
from adgn.nn import GraphNetwork, build_model
from adgn.training.block_batches import BlockBatches
from adgn.training.quality import Quality
from adgn.training.seeding import flushed_denormals

_BATCH_GRAPHS = 256
_TEMPERATURES = tuple(2.0 ** (power / 2) for power in range(-4, 7))
_FEW_ROWS, _MANY_ROWS = 100, 1000
_ROUNDS = 20  # of the greedy choice: weights are multiples of 1 / 20


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """A trained network and the direction in which it listens.

    Attributes:
        network: The network, with the weights of its best epoch.
        direction: See [`turned`][adgn.graph.turned].
    """

    network: GraphNetwork
    direction: OperatorDirection

    @torch.no_grad()
    @flushed_denormals()
    def outputs(self, inputs: Inputs) -> Tensor:
        """`[rows, outputs]`: logits of classes, or values."""
        self.network.eval()
        if inputs.node_ptr is None:
            output: Tensor = self.network(inputs.x, *inputs.graph(self.direction))
            return output
        edges, weight = inputs.edges(self.direction)
        blocks = GraphBlocks(edges, inputs.node_ptr, weight, normalized=inputs.normalized)
        everyone = torch.arange(inputs.num_rows)
        batches = BlockBatches(inputs.x, blocks, everyone, everyone, _BATCH_GRAPHS)
        return torch.cat(
            [
                self.network(batch.x, batch.graph, batch=batch.batch, batch_size=batch.num_graphs)
                for batch in batches.batches(0)
            ]
        )

    def tensors(self) -> dict[str, Tensor]:
        """The weights, by name."""
        return dict(self.network.state_dict())


@dataclass(frozen=True, eq=False)
class Member:
    """One of the models that are averaged.

    Attributes:
        name: What tables call it.
        model: A network or a closed-form model.
        weight: Its share in the average.
        temperature: What the logits of classes are divided by.
    """

    name: str
    model: NetworkModel | RidgeModel
    weight: float = 1.0
    temperature: float = 1.0

    def outputs(self, inputs: Inputs) -> Tensor:
        """`[rows, outputs]`: logits of classes, or values."""
        return self.model.outputs(inputs) / self.temperature

    def to_json(self) -> dict[str, Any]:
        """What is needed, besides its tensors, to make it again."""
        about = {"name": self.name, "weight": self.weight, "temperature": self.temperature}
        if isinstance(self.model, RidgeModel):
            return {**about, "kind": "ridge", "view": self.model.view.to_json()}
        return {
            **about,
            "kind": "network",
            "direction": self.model.direction,
            "network": dict(self.model.network.configuration),
        }


def member_from(about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Member:
    """The member that `to_json` and `tensors` describe."""
    model: NetworkModel | RidgeModel
    if about["kind"] == "ridge":
        model = RidgeModel.of(about["view"], tensors)
    else:
        network = build_model(**about["network"])
        network.load_state_dict(dict(tensors))
        model = NetworkModel(network, direction_read(about["direction"]))
    return Member(about["name"], model, about["weight"], about["temperature"])


def calibrated(member: Member, outputs: Tensor, y: Tensor) -> Member:
    """The member with the temperature that gives the lowest cross-entropy on validation rows.

    Args:
        member: Its model.
        outputs: Logits of the rows, `[rows, classes]`.
        y: Their classes.

    Example:
        >>> network = build_model("mlp", 1, 1, 2, 1)
        >>> sure_and_half_wrong = torch.tensor([[9.0, 0.0], [9.0, 0.0]])
        >>> member = Member("mlp", NetworkModel(network, "in"))
        >>> calibrated(member, sure_and_half_wrong, torch.tensor([0, 1])).temperature
        8.0
    """
    best = min(_TEMPERATURES, key=lambda t: float(cross_entropy(outputs.double() / t, y)))
    return replace(member, temperature=best)


def notes_on_fa(members: Sequence[Member], inputs: Inputs) -> list[str]:
    """A note on the closed-form members where the last layer is to be on the complete graph.

    Example:
        >>> from adgn.data import Graph, Preprocessing
        >>> graph = Graph.from_arrays([[0.0]] * 2, [[0], [1]])
        >>> network = Member("mlp", NetworkModel(build_model("mlp", 1, 1, 2, 1), "in"))
        >>> notes_on_fa([network], Inputs.of(graph, Preprocessing.fit(graph)))
        []
    """
    closed = [member.name for member in members if isinstance(member.model, RidgeModel)]
    if not closed or not inputs.fully_adjacent:
        return []
    return [
        f"transform='fa' has no effect on {', '.join(closed)}: closed-form models have no layers, "
        "and so no last one"
    ]


def averaged(outputs: Sequence[Tensor], weights: Sequence[float], quality: Quality) -> Tensor:
    """The weighted mean, in double precision, of probabilities or of values.

    Example:
        >>> values = [torch.tensor([[1.0]]), torch.tensor([[3.0]])]
        >>> averaged(values, [0.25, 0.75], Quality("mse"))
        tensor([[2.5000]], dtype=torch.float64)
    """
    total = torch.zeros_like(outputs[0], dtype=torch.double)
    for output, weight in zip(outputs, weights, strict=True):
        part = output.double().softmax(-1) if quality.classes else output.double()
        total += weight * part
    return total


def greedy_weights(outputs: Sequence[Tensor], y: Tensor, quality: Quality) -> list[float]:
    """How much each model counts in the average, chosen on validation rows.

    The model with the best metric comes first; then models are added one after another, each time
    the one with which the average has the lowest loss (cross-entropy, or squared error); a model
    may come several times. Of the averages on this way the one with the lowest loss is kept, among
    those whose metric is within one standard error of the best one's.

    Few rows tell models apart poorly. So with n rows, fewer than 1,000, the share 100 / (100 + n)
    of the weight goes in equal parts to all models whose own metric is within one standard error
    of the best model's.

    Args:
        outputs: Of each model, `[rows, outputs]`.
        y: The targets of the rows.
        quality: The metric.

    Returns:
        A weight for each model, 1 in sum.

    Example:
        >>> good, bad = torch.tensor([[2.0, 0.0], [0.0, 2.0]]), torch.tensor([[0.0, 2.0]] * 2)
        >>> greedy_weights([good, bad], torch.tensor([0, 1]), Quality("accuracy", 2))
        [1.0, 0.0]
    """
    parts = [o.double().softmax(-1) if quality.classes else o.double() for o in outputs]

    def loss(mean: Tensor) -> float:
        if quality.classes:
            return -float(mean.gather(1, y.view(-1, 1)).clamp(min=1e-12).log().mean())
        return float((mean - y).square().mean())

    def metric(mean: Tensor) -> float:
        return quality.score(mean.clamp(min=1e-12).log() if quality.classes else mean, y)

    def rank(number: int) -> tuple[float, float]:
        return -metric(parts[number]), loss(parts[number])

    chosen = [min(range(len(parts)), key=rank)]
    total = parts[chosen[0]]
    path = [(metric(total), loss(total), 1)]
    while len(chosen) < _ROUNDS:
        count = len(chosen) + 1
        added = min(range(len(parts)), key=lambda n: loss((total + parts[n]) / count))
        chosen.append(added)
        total = total + parts[added]
        path.append((metric(total / count), loss(total / count), count))
    best = max(step[0] for step in path)
    enough = best - quality.standard_error(best, len(y))
    _, _, length = min((step for step in path if step[0] >= enough), key=lambda step: step[1])
    kept = chosen[:length]
    weights = [kept.count(number) / len(kept) for number in range(len(parts))]
    if len(y) >= _MANY_ROWS:
        return weights
    alone = [metric(part) for part in parts]
    enough = max(alone) - quality.standard_error(max(alone), len(y))
    alike = [float(score >= enough) for score in alone]
    share = _FEW_ROWS / (_FEW_ROWS + len(y))
    return [(1 - share) * w + share * a / sum(alike) for w, a in zip(weights, alike, strict=True)]
