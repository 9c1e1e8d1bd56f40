"""The one training loop."""

import math
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from adgn._util.suggestions import unknown_name
from adgn.distributed.ranks import ALONE, Ranks
from adgn.graph.checks import NonFiniteError
from adgn.nn import GraphNetwork
from adgn.training.batches import BatchSource, LabelledBatch, LoaderBatches, Split
from adgn.training.checkpoint import load_into
from adgn.training.errors import DivergedError, Interrupted
from adgn.training.forward import Forward, forward_of, takes_nodes
from adgn.training.metrics import LearnedNothingWarning, Scores, learned_nothing
from adgn.training.objective import EarlyStopping, Objective, resolve_objective, step_schedule
from adgn.training.progress import Callback, Progress
from adgn.training.readout import FixedStates, RidgeReadout, check_solvable
from adgn.training.run import Checkpointer
from adgn.training.seeding import (
    derived_seed,
    flushed_denormals,
    own_randomness,
    random_state,
    seed_all,
    thread_count,
)
from adgn.training.shares import gathered

Schedule = LRScheduler | ReduceLROnPlateau
StopReason = Literal["max_epochs", "patience", "target", "solved"]


class Trainer:
    """Trains any module on batches of graphs, evaluates it, and stops at the right time.

    An epoch is `passes_per_epoch` passes over the train batches; after it the score that early
    stopping follows is measured. The weights of the best epoch are kept.

    A network with `readout="ridge"` is solved instead (`adgn.training.readout`): one epoch is all,
    in which nothing is drawn at random and optimiser and schedule do nothing.

    Args:
        model: Any module. Called as `model(x, edge_index, …)` with those of `edge_weight`,
            `edge_attr`, `batch` and `batch_size` that its `forward` takes and the batch has.
        train: The train batches: a `BatchSource`, or a PyG loader.
        val: The validation batches, where there are some.
        objective: `"regression"` (mean squared error), `"classification"` (cross-entropy), or an
            `Objective`.
        optimizer: Over the model's parameters; by default Adam with learning rate 0.003.
        schedule: A learning-rate scheduler of torch, stepped once per epoch.
        stopping: By default on `val`, without patience: the best epoch is kept, none is saved.
        monitor: The score that `stopping` follows; by default the objective's.
        monitor_split: Where it is measured; by default `"val"` if given, else `"train"`.
        max_epochs: Epochs at most.
        passes_per_epoch: Passes over the train batches that make an epoch.
        evaluate_every: Epochs between two measurements.
        accumulate: Batches whose gradients make one step, each batch weighing by its size.
        clip_norm: The largest norm of the gradient of all weights together.
        seed: Of all random numbers in training; the global generators are left as they were.
        forward: Calls the model in another way: `forward(model, batch)`.
        train_eval: The train batches for evaluation, in a fixed order; by default `train`.
        checkpointer: Writes the scores of each epoch and the states from which a run can go on; by
            default scores are in `history`, and no state is kept.
        callbacks: Called after every step and epoch.
        penalties: For `readout="ridge"`: the penalties that are tried, in units of the mean of the
            Gram matrix's diagonal. By default 1e-9 to 10.
        ranks: The processes that train together, each with its share of every batch (see
            `adgn.training.shares`). All have the same weights and do the same steps.

    Attributes:
        history: The scores of each epoch.

    Example:
        >>> import torch
        >>> from adgn.data.transfer import GraphTransfer
        >>> from adgn.nn import ADGN
        >>> from torch_geometric.loader import DataLoader
        >>> loader = DataLoader(GraphTransfer("line", 2, num_graphs=8), batch_size=4, shuffle=True)
        >>> _ = torch.manual_seed(0)
        >>> trainer = Trainer(ADGN(1, 8, 1, num_layers=2), loader, max_epochs=2)
        >>> trainer.fit()
        'max_epochs'
        >>> sorted(trainer.evaluate("train"))
        ['log10_mse', 'log10_mse_paper', 'loss', 'mae', 'mse']
    """

    def __init__(
        self,
        model: nn.Module,
        train: BatchSource | Iterable[Any],
        val: BatchSource | Iterable[Any] | None = None,
        *,
        objective: str | Objective = "regression",
        optimizer: torch.optim.Optimizer | None = None,
        schedule: Schedule | None = None,
        stopping: EarlyStopping | None = None,
        monitor: str | None = None,
        monitor_split: Split | None = None,
        max_epochs: int = 1500,
        passes_per_epoch: int = 1,
        evaluate_every: int = 1,
        accumulate: int = 1,
        clip_norm: float | None = None,
        seed: int = 0,
        forward: Forward | None = None,
        train_eval: BatchSource | Iterable[Any] | None = None,
        checkpointer: Checkpointer | None = None,
        callbacks: Sequence[Callback] = (),
        penalties: Sequence[float] | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        counts = {"max_epochs": max_epochs, "passes_per_epoch": passes_per_epoch}
        counts |= {"evaluate_every": evaluate_every, "accumulate": accumulate}
        for name, value in counts.items():
            if value < 1:
                raise ValueError(f"{name}={value} is not valid; give at least 1")
        if clip_norm is not None and not clip_norm > 0:
            raise ValueError(f"clip_norm={clip_norm} is not valid; give a positive norm, or None")
        self.model = model
        self.objective = resolve_objective(objective)
        self.seed = seed
        self.sources: dict[Split, BatchSource] = {"train": self._source(train, "train")}
        if val is not None:
            self.sources["val"] = self._source(val, "val")
        self._train = self.sources["train"]
        if train_eval is not None:
            self.sources["train"] = self._source(train_eval, "train")
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizer = optimizer or torch.optim.Adam(trained, lr=0.003)
        self.schedule = schedule
        self.monitor = self.objective.monitor if monitor is None else monitor
        if self.monitor not in self.objective.modes:
            raise unknown_name("monitor", self.monitor, self.objective.modes)
        mode = self.objective.modes[self.monitor]
        self.stopping = EarlyStopping(mode) if stopping is None else stopping
        self.monitor_split: Split = monitor_split or ("train" if val is None else "val")
        if self.monitor_split not in self.sources:
            raise ValueError(
                f"monitor_split={self.monitor_split!r} has no batches; give them, or follow "
                f"{' or '.join(self.sources)}"
            )
        self.max_epochs = max_epochs
        self.passes_per_epoch = passes_per_epoch
        self.evaluate_every = evaluate_every
        self.accumulate = accumulate
        self.clip_norm = clip_norm
        self.checkpointer = checkpointer
        self.callbacks = list(callbacks)
        self.history: list[dict[str, Any]] = []
        self.progress = Progress()
        self.best_weights: dict[str, Tensor] | None = None
        self.threads = torch.get_num_threads()
        self._forward = forward_of(model) if forward is None else forward
        self._takes_nodes = forward is None and takes_nodes(model)
        self.penalties = penalties
        self.ranks = ranks
        self._states: FixedStates | None = None
        if isinstance(model, GraphNetwork) and model.solves_readout:
            self._states, self.evaluate_every = FixedStates(model), 1
            check_solvable(forward is not None, self.monitor_split, penalties, ranks.size)
        self._random: Mapping[str, Any] | None = None
        self._stop_requested = False
        self._stop_agreed = False
        # Whether gradients are sums, to be divided by what the batches count for in all.
        self._sums = accumulate > 1 or ranks.size > 1
        self._pending_loss = 0.0

    def _source(self, batches: BatchSource | Iterable[Any], split: Split) -> BatchSource:
        if isinstance(batches, BatchSource):
            return batches
        weight = next(self.model.parameters(), None)
        device = torch.device("cpu") if weight is None else weight.device
        return LoaderBatches(batches, split, seed=self.seed, device=device)

    # The loop, from the outside in: epochs, passes, batches.

    @flushed_denormals()
    def fit(self) -> StopReason:
        """Trains until the end, from the beginning or a loaded state; returns why it stopped.

        Raises:
            DivergedError: The loss, a score or a weight is no longer finite.
            Interrupted: `request_stop` was called; a state was saved.
            TrainingError: Another thread is training; random generators are the process's.

        Warns:
            LearnedNothingWarning: After ten epochs or more, the train score is that of the constant
                predictor.
        """
        start = self.seed if self._random is None else self._random
        with own_randomness(start, whole_run=True), thread_count(self.threads):
            if self._random is None:
                self._save()  # so that there is a state from the first moment on
            self._random = None
            self.model.train()
            while (reason := self.stop_reason()) is None:
                self._epoch()
            self._save()
            concern = learned_nothing(self)
        if concern is not None and self.ranks.rank == 0:
            warnings.warn(concern, LearnedNothingWarning, stacklevel=3)
        return reason

    def stop_reason(self) -> StopReason | None:
        """Why training is over; `None` while it is not."""
        epoch = self.progress.epoch
        if self._states is not None:
            return "solved" if epoch else None
        return self.stopping.reason(epoch) or ("max_epochs" if epoch >= self.max_epochs else None)

    def request_stop(self) -> None:
        """Asks for a stop after the step under way; safe to call from a signal handler."""
        self._stop_requested = True

    def _epoch(self) -> None:
        progress = self.progress
        if not self.model.training:  # walking over all modules takes time that small models feel
            self.model.train()
        line: dict[str, Any] = {"epoch": progress.epoch + 1}
        if self._states is not None:
            line |= self._solve(self._states)
        else:
            while progress.passes < (progress.epoch + 1) * self.passes_per_epoch:
                self._pass()
            line["lr"] = float(self.optimizer.param_groups[0]["lr"])
            line["train_loss"] = progress.loss_sum / max(progress.size_sum, 1)
        started = time.perf_counter()
        score: float | None = None
        progress.epoch += 1
        if progress.epoch % self.evaluate_every == 0 or progress.epoch >= self.max_epochs:
            scores = self.evaluate(self.monitor_split)
            score = scores[self.monitor]
            if math.isnan(score) and math.isfinite(scores.get("loss", math.nan)):
                raise ValueError(
                    f"{self.monitor} is not defined on the {self.monitor_split} split, whose rows "
                    "are all of one class; follow another score"
                )
            if math.isnan(score) or score == math.inf:  # a logarithm of no error at all is −∞
                raise self._diverged(f"the {self.monitor_split} {self.monitor}", progress.epoch)
            better = self.stopping.update(progress.epoch, score)
            line[self.monitor_split] = scores
            line["best"] = better
            if better:
                self._keep_weights()
        if self.schedule is not None and self._states is None:
            step_schedule(self.schedule, score)
        progress.loss_sum, progress.size_sum = 0.0, 0
        self.history.append(line)
        if self.checkpointer is not None:
            self.checkpointer.record(line)
        progress.seconds += time.perf_counter() - started
        for callback in self.callbacks:
            callback.on_epoch(self, line)
        self._pause()

    def _pass(self) -> None:
        progress = self.progress
        group_size = 0
        started = time.perf_counter()
        alone = self.ranks.size == 1
        for batch in self._train.batches(progress.passes, progress.batch):
            group_size += self._backward(batch)
            progress.batch += 1
            if progress.batch % self.accumulate == 0 and (group_size or not alone):
                self._step(group_size)
                group_size = 0
                progress.seconds += time.perf_counter() - started
                self._pause()
                started = time.perf_counter()
        if group_size or (not alone and progress.batch % self.accumulate):
            self._step(group_size)
        elif progress.batch == 0:
            raise ValueError("the train batches are empty; there is nothing to train on")
        if progress.size_sum == 0:
            raise ValueError("every label of the train batches is -1 (unknown); give some labels")
        progress.seconds += time.perf_counter() - started
        progress.passes += 1
        progress.batch = 0

    def _solve(self, states: FixedStates) -> dict[str, Any]:
        """The readout in closed form; what its line in the history says about it."""
        started = time.perf_counter()
        self.model.eval()
        solver = RidgeReadout(states.network, self.objective, self.penalties)
        for rows, batch in states.of(self.sources["train"]):
            solver.add(rows, batch)
            for callback in self.callbacks:
                callback.on_step(self)
            self._pause()  # a run that is stopped here begins anew: nothing is kept of the sums
        mode = self.objective.modes[self.monitor]
        held_out = states.of(self.sources[self.monitor_split])
        found = solver.choose(held_out, self.monitor, mode)
        self.progress.passes += 1
        loss = self.evaluate("train")["loss"]
        self.progress.seconds += time.perf_counter() - started
        return {"penalty": found.penalty, "scale": found.scale, "train_loss": loss}

    def _backward(self, batch: LabelledBatch) -> int:
        several = self.ranks.size > 1
        if several:
            if batch.num_graphs == 0:  # fewer graphs than ranks
                return 0
            # Each rank drops out entries of its own; a run that goes on draws the same.
            place = (self.progress.passes, self.progress.batch)
            seed_all(derived_seed(self.seed, "rank", self.ranks.rank, *place))
        output, batch = self.objective.known(self._output(batch), batch)
        if batch.size == 0:  # no label of it is known
            if several:  # other ranks may wait for the gradients of this one's states
                (output.sum() * 0.0).backward()  # type: ignore[no-untyped-call]
            return 0
        loss = self.objective.loss(output, batch)
        value = loss.item()
        if not math.isfinite(value):
            batch.check_finite()
            if not several:  # else all ranks find it in the sum
                raise self._diverged("the train loss", self.progress.epoch + 1)
        self._pending_loss += value * batch.size
        if self._sums:
            loss = loss * batch.size
        loss.backward()  # type: ignore[no-untyped-call]
        return batch.size

    def _step(self, group_size: int) -> None:
        loss, size = self._pending_loss, group_size
        self._pending_loss = 0.0
        if self.ranks.size > 1:
            numbers = [loss, float(group_size), float(self._stop_requested)]
            trained = [p for p in self.model.parameters() if p.requires_grad]
            loss, total, stops = self.ranks.sum_gradients(trained, numbers)
            size, self._stop_agreed = int(total), stops > 0
            if not math.isfinite(loss):
                raise self._diverged("the train loss", self.progress.epoch + 1)
        self.progress.loss_sum += loss
        self.progress.size_sum += size
        if self._sums:
            for parameter in self.model.parameters():
                if parameter.grad is not None:
                    parameter.grad.div_(max(size, 1))
        if size:
            if self.clip_norm is not None:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        for callback in self.callbacks:
            callback.on_step(self)

    def _pause(self) -> None:
        """Between two steps: the moment for a state, or for a stop, on all ranks at once."""
        if self._stop_requested if self.ranks.size == 1 else self._stop_agreed:
            self._stop_requested = self._stop_agreed = False
            self._save()
            self._random = random_state()  # where `fit` goes on, should it be called again
            epoch = self.progress.epoch + 1
            raise Interrupted(f"stopped on request in epoch {epoch}", epoch)
        if self.checkpointer is not None and self.checkpointer.due(self.progress.epoch):
            self._save()

    # One batch, one evaluation.

    def _output(self, batch: LabelledBatch) -> Tensor:
        try:
            if self._states is not None:
                return self._states.outputs(batch)
            if batch.num_graphs == 0:  # fewer graphs than ranks
                return next(self.model.parameters()).new_zeros(0, 0)
            output = self._forward(self.model, batch)
        except NonFiniteError as error:
            batch.check_finite()
            epoch = self.progress.epoch + int(self.model.training)
            raise self._diverged("a state of the network", epoch) from error
        if self._takes_nodes and batch.nodes is not None:
            return output  # of the rows alone
        if batch.rows is not None and output.size(0) == batch.x.size(0):
            output = output[batch.rows]
        return output

    @torch.no_grad()
    @flushed_denormals()
    def evaluate(self, split: Split = "val", source: BatchSource | None = None) -> Scores:
        """The scores of the weights as they are, on a split or on other batches."""
        metrics = self.objective.metrics()
        for output, batch in self.scored(split, source):
            if batch.size:
                metrics.update(output, batch)
        scores = metrics.compute()
        if not math.isfinite(scores.get("loss", 0.0)):  # rather the data than the weights?
            for batch in (self.sources[split] if source is None else source).batches(0):
                batch.check_finite()
        return scores

    @torch.no_grad()
    def scored(
        self, split: Split, source: BatchSource | None = None
    ) -> Iterator[tuple[Tensor, LabelledBatch]]:
        """The outputs of all ranks for the rows of each batch whose target is known."""
        for output, batch in self.outputs(split, source):
            if batch.num_graphs:
                output, batch = self.objective.known(output, batch)
            yield gathered(self.ranks, output, batch)

    @torch.no_grad()
    def outputs(
        self, split: Split, source: BatchSource | None = None
    ) -> Iterator[tuple[Tensor, LabelledBatch]]:
        """The model's outputs for the rows of each batch, without dropout; labels may be −1."""
        was_training = self.model.training
        if was_training:
            self.model.eval()
        try:
            for batch in (self.sources[split] if source is None else source).batches(0):
                yield self._output(batch), batch
        finally:
            if was_training:
                self.model.train()

    def _keep_weights(self) -> None:
        weights = self.model.state_dict()
        if self.best_weights is None:
            self.best_weights = {name: weight.clone() for name, weight in weights.items()}
        for name, kept in self.best_weights.items():
            kept.copy_(weights[name])

    def restore_best(self) -> None:
        """Puts the weights of the best epoch into the model."""
        if self.best_weights is None:
            raise ValueError("there is no best epoch yet; call fit first")
        if self._states is None:
            self.model.load_state_dict(self.best_weights)
            return
        # All other weights are what they were, and states that are known stay known.
        start = "readout."
        readout = {n[len(start) :]: w for n, w in self.best_weights.items() if n.startswith(start)}
        self.model.get_submodule("readout").load_state_dict(readout)

    def _diverged(self, what: str, epoch: int) -> DivergedError:
        lr = self.optimizer.param_groups[0]["lr"]
        return DivergedError(
            f"{what} is not finite in epoch {epoch}: the run has diverged and was stopped. Lower "
            f"the learning rate (now {lr:g}), clip gradients, or take fewer layers",
            epoch,
        )

    # States.

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on exactly from here."""
        return {
            "weights": self.model.state_dict(),
            "best_weights": self.best_weights,
            "optimizer": self.optimizer.state_dict(),
            "schedule": None if self.schedule is None else self.schedule.state_dict(),
            "stopping": self.stopping.state_dict(),
            "progress": asdict(self.progress),
            "random": random_state(),
            "threads": torch.get_num_threads(),
            "ranks": self.ranks.size,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes back to a state; `fit` then goes on from it."""
        load_into(self.model, state["weights"], "the state")
        weight = next(iter(self.model.state_dict().values()))
        best = state["best_weights"]
        self.best_weights = best and {name: w.to(weight.device) for name, w in best.items()}
        self.optimizer.load_state_dict(state["optimizer"])
        if self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])
        self.stopping.load_state_dict(state["stopping"])
        self.progress = Progress(**state["progress"])
        if self.progress.passes or self.progress.batch:
            # It has stepped, in a process before this one; torch's schedules ask for this mark.
            self.optimizer._opt_called = True  # type: ignore[attr-defined]
        if state.get("ranks", 1) == self.ranks.size:  # else each has its share of other cores
            self.threads = state["threads"]
        self._random = state["random"]

    def _save(self) -> None:
        if not all(_finite(weight) for weight in self.model.parameters()):
            raise self._diverged("a weight", max(self.progress.epoch, 1))
        if self.checkpointer is not None:
            self.checkpointer.save(self.state_dict())


def _finite(tensor: Tensor) -> bool:
    values = tensor.values() if tensor.layout == torch.sparse_csr else tensor
    return bool(torch.isfinite(values.detach()).all())
