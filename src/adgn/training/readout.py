r"""The readout of a network whose other weights stay as they are, in closed form.

The states $\mathbf{h}_i$ of all train rows (pooled, where graphs are predicted) and their targets
make a ridge regression (`adgn.training.ridge`), whose solution becomes the weights of the network's
linear readout. Classes are one-hot targets, one-vs-rest; the answer is the largest output.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from adgn.graph.cache import tensor_state
from adgn.graph.checks import NonFiniteError
from adgn.nn import GraphNetwork
from adgn.training.batches import BatchSource, LabelledBatch
from adgn.training.errors import DivergedError
from adgn.training.objective import Mode, Objective
from adgn.training.ridge import RidgeSolution, RidgeStatistics

# In units of the mean of the Gram matrix's diagonal.
PENALTIES = tuple(10.0**power for power in range(-9, 2))
# Outputs of a regression on ones and zeros are no logits until they are multiplied.
_SCALES = tuple(2.0**power for power in range(-1, 8))

REMEMBERED_BYTES = 2**29  # of states, so that they are not computed again
GRAPH_ARGUMENTS = ("edge_weight", "edge_attr", "batch", "batch_size")
States = tuple[Tensor, LabelledBatch]  # what the readout reads for the rows of a batch, [rows, F]


def graph_arguments(batch: LabelledBatch, taken: Sequence[str] = GRAPH_ARGUMENTS) -> dict[str, Any]:
    """What a batch has beside features and edges, of what a model takes."""
    size = None if batch.batch is None else batch.num_graphs
    given = {name: getattr(batch, name, size) for name in taken}
    return {name: value for name, value in given.items() if value is not None}


class FixedStates:
    """What the readout of a network reads, whose weights before it do not change.

    States are remembered, those of the first batches up to half a gigabyte in all and those of the
    last batch, so that the splits of one graph, and evaluations after the readout was solved, cost
    one propagation.

    Args:
        network: A network with `readout="ridge"`, in evaluation mode whenever it is asked.
    """

    def __init__(self, network: GraphNetwork) -> None:
        self.network = network
        # By the objects that they were computed from, which are kept too: so no other object can
        # have their numbers.
        self._known: dict[tuple[object, ...], tuple[object, Tensor]] = {}
        self._last: tuple[object, ...] | None = None
        self._bytes = 0

    def of(self, source: BatchSource) -> Iterator[States]:
        """The states of the scored rows, and the batch, for all batches of a source."""
        for batch in source.batches(0):
            yield self(batch), batch

    def outputs(self, batch: LabelledBatch) -> Tensor:
        """The network's outputs for the scored rows."""
        outputs: Tensor = self.network.readout(self(batch))
        return outputs

    @torch.no_grad()
    def __call__(self, batch: LabelledBatch) -> Tensor:
        """`[rows, F]`: the states of the scored rows."""
        parts = (batch.x, batch.graph, batch.edge_weight, batch.edge_attr, batch.batch)
        tensors = [part for part in parts if isinstance(part, Tensor)]
        tensors += [weight for weight in self.network.parameters() if not weight.requires_grad]
        # The very objects, unchanged since; of some tensors nothing is known of changes.
        changes = [tensor_state(tensor) for tensor in tensors]
        key = (*map(id, parts), *map(id, tensors), *changes)
        if None in changes or key not in self._known:
            self._remember(key, parts, self._compute(batch))
        states = self._known[key][1]
        every = self.network.level == "graph" or batch.rows is None
        return states if every else states[batch.rows]

    def _remember(self, key: tuple[object, ...], parts: object, states: Tensor) -> None:
        if self._last is not None:
            self._known.pop(self._last, None)
            self._last = None
        size = states.numel() * states.element_size()
        if self._bytes + size <= REMEMBERED_BYTES:
            self._bytes += size
        else:
            self._last = key
        self._known[key] = (parts, states)

    def _compute(self, batch: LabelledBatch) -> Tensor:
        try:
            states = self.network.states(batch.x, batch.graph, **graph_arguments(batch))
        except NonFiniteError as error:
            raise self._exploded(batch) from error
        states = self.network.pool(states, batch.batch, batch.num_graphs)
        if not bool(states.isfinite().all()):
            raise self._exploded(batch)
        return states

    def _exploded(self, batch: LabelledBatch) -> DivergedError:
        batch.check_finite()
        return DivergedError(
            "a state of the network is not finite: it explodes with these random weights. Take "
            "fewer layers, or a smaller step size (model.epsilon) or radius (model.radius)",
            1,
        )


@dataclass(frozen=True)
class SolvedReadout:
    """What was chosen on the validation rows.

    Attributes:
        penalty: Of the ridge regression, in units of the mean of the Gram matrix's diagonal.
        scale: What the solution was multiplied by: of classes the one with the smallest
            cross-entropy, else 1.
        score: The score by which it was chosen.
    """

    penalty: float
    scale: float
    score: float


class RidgeReadout:
    """Solves the readout of a network with `readout="ridge"`.

    Batches are added one after another, and only sums are kept of them. Then all penalties are
    solved and compared on validation rows, in one more pass. At graph level features are divided by
    their standard deviations, for sums over a graph are far larger than means.

    Args:
        network: A network whose readout is to be solved.
        objective: `"regression"` or `"classification"`, resolved.
        penalties: What is tried, in units of the mean of the Gram matrix's diagonal; `None`: 1e-9
            to 10.

    Example:
        >>> from adgn.nn import build_model
        >>> from adgn.training.objective import resolve_objective
        >>> model = build_model("gesn", 1, 8, 1, num_layers=2)
        >>> solver = RidgeReadout(model, resolve_objective("regression"))
        >>> states = torch.linspace(0, 1, 80).view(10, 8)
        >>> batch = LabelledBatch(states, states, states.sum(1, keepdim=True), size=10)
        >>> solver.add(states, batch)
        >>> solver.choose([(states, batch)], "mse", "min").penalty < 1e-3
        True
    """

    def __init__(
        self, network: GraphNetwork, objective: Objective, penalties: Sequence[float] | None = None
    ) -> None:
        if objective.name not in ("regression", "classification"):
            raise ValueError(
                f"readout='ridge' cannot be solved for the objective {objective.name!r}; use "
                "'regression' or 'classification', or train the network with readout='linear'"
            )
        readout = network.readout
        assert isinstance(readout, nn.Linear)
        self.readout = readout
        self.objective = objective
        self.penalties = tuple(sorted(penalties or PENALTIES, reverse=True))
        self.standardise = network.level == "graph"
        self.statistics = RidgeStatistics(readout.in_features, readout.out_features)

    @property
    def classes(self) -> bool:
        """Whether targets are classes."""
        return self.objective.name == "classification"

    @torch.no_grad()
    def add(self, states: Tensor, batch: LabelledBatch) -> None:
        """Adds train rows, each with its weight in the loss."""
        states, known = self._known(states, batch)
        if known.size == 0:
            return
        y = one_hot(known.y, self.readout.out_features) if self.classes else known.y
        # Shares in a batch sum to 1: so each graph, or each row of one graph, counts alike in all.
        weight = None if known.weight is None else known.weight.view(-1) * known.size
        self.statistics.add(states, y.view(len(states), -1), weight)

    @torch.no_grad()
    def choose(self, held_out: Iterable[States], monitor: str, mode: Mode) -> SolvedReadout:
        """Solves, and writes the solution with the best score into the readout.

        Args:
            held_out: States of the validation rows, batch by batch.
            monitor: The score that is compared. Of equal scores the larger penalty has the better.
            mode: Whether it is best at its `"min"` or `"max"`.
        """
        if self.statistics.rows == 0:
            raise ValueError("every label of the train batches is -1 (unknown); give some labels")
        solutions = self.statistics.solve(
            self.penalties, relative=True, standardise=self.standardise
        )
        metrics = [self.objective.metrics() for _ in solutions]
        scales = _SCALES if self.classes else (1.0,)
        losses = torch.zeros(len(solutions), len(scales), dtype=torch.float64)
        rows = 0
        for states, batch in held_out:
            states, known = self._known(states, batch)
            if known.size == 0:
                continue
            rows += known.size
            for number, solution in enumerate(solutions):
                output = solution.outputs(states)
                metrics[number].update(output, known)
                if self.classes:
                    for place, scale in enumerate(scales):
                        loss = self.objective.loss(scale * output, known)
                        losses[number, place] += float(loss) * known.size
        by_loss = self.classes and monitor == "loss"
        sign = 1 if mode == "max" else -1
        best, score = 0, float("nan")
        for number, found in enumerate(metrics):
            value = float(losses[number].min()) / max(rows, 1)
            value = value if by_loss else found.compute()[monitor]
            if sign * value > sign * score or (score != score and value == value):
                best, score = number, value
        scale = scales[int(losses[best].argmin())]
        self._write(solutions[best], scale)
        return SolvedReadout(solutions[best].penalty, scale, score)

    def _known(self, states: Tensor, batch: LabelledBatch) -> States:
        """The rows whose target is known, which must fit the readout."""
        output, known = self.objective.known(self.readout(states), batch)
        return (states if len(output) == len(states) else states[batch.y >= 0]), known

    def _write(self, solution: RidgeSolution, scale: float) -> None:
        self.readout.weight.copy_(scale * solution.weight.t())
        self.readout.bias.copy_(scale * solution.bias)


def check_solvable(
    custom_forward: bool, split: str, penalties: Sequence[float] | None, ranks: int
) -> None:
    """Raises where a trainer could not solve a readout in closed form.

    Args:
        custom_forward: Whether the network is called in a way of the user's own.
        split: What the scores are followed on.
        penalties: Those to choose from.
        ranks: How many processes train together.
    """
    if custom_forward:
        raise ValueError(
            "forward was given for a network with readout='ridge', whose states are needed; "
            "leave it out, or use readout='linear'"
        )
    if split == "train" and (not penalties or len(penalties) > 1):
        raise ValueError(
            "readout='ridge' chooses its penalty on validation rows; give val, follow it "
            "(monitor_split='val'), or give a single one in penalties"
        )
    if ranks > 1:
        raise ValueError(
            f"readout='ridge' is solved by one process, and there are {ranks} ranks; leave out "
            "the workers"
        )
