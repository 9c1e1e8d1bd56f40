"""Candidates become members: by the one training loop, and by the package's own selection."""

import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
from torch import Tensor

from adgn._util.environment import NotEnoughMemoryError
from adgn.analysis.probe.hops import HopView
from adgn.data import TargetEncoder
from adgn.data.own.inputs import Inputs
from adgn.data.own.splits import Parts
from adgn.estimators.candidates import Candidate, search_space
from adgn.estimators.members import Member, NetworkModel
from adgn.estimators.ridge import fit_ridge
from adgn.graph import OperatorDirection
from adgn.nn import GraphNetwork
from adgn.selection.definition import StudyDefinition
from adgn.selection.protocols import Protocol, Run
from adgn.selection.replicate import StopCallback
from adgn.selection.results import choose
from adgn.selection.spaces import check_space
from adgn.selection.status import ranked
from adgn.selection.storage import open_storage, sqlite_url
from adgn.selection.study import plan, start_study, trial_params
from adgn.selection.worker import WorkerSpec, work
from adgn.tasks.own import OwnData, in_memory_task
from adgn.training import (
    Callback,
    DivergedError,
    Interrupted,
    LearnedNothingWarning,
    open_run,
    resolve_config,
    shared_data,
    train,
)
from adgn.training.config import merged
from adgn.training.quality import METRICS, Quality

_PLANNED = 10  # trials at a time, for a plan takes time too
Deadline = float  # of time.monotonic(); infinity where there is none


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be learnt, made ready for all candidates.

    Attributes:
        inputs: The graph.
        y: Encoded targets.
        parts: The rows.
        encoder: What targets mean.
        quality: What is compared.
        row_weight: `[rows]`; how much a row counts in the loss.
        seed: Of initial weights, order and dropout.
        device: Where to train.
        settings: What the user set, over what a candidate says.
    """

    inputs: Inputs
    y: Tensor
    parts: Parts
    encoder: TargetEncoder
    quality: Quality
    row_weight: Tensor | None = None
    seed: int = 0
    device: str = "cpu"
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def monitor(self) -> str:
        """The score that early stopping follows."""
        return METRICS[self.encoder.kind][self.quality.metric]

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth saying about target, rows and features."""
        return (*self.encoder.notes, *self.parts.notes, *self.inputs.notes)

    def data(self, direction: OperatorDirection) -> OwnData:
        """The data for networks that listen in a direction."""
        edges, weight = self.inputs.edges(direction)
        return OwnData(
            x=self.inputs.x,
            edge_index=edges,
            y=self.y,
            parts={"train": self.parts.train, "val": self.parts.valid},
            out_channels=self.encoder.num_outputs,
            level=self.inputs.level,
            edge_weight=weight,
            node_ptr=self.inputs.node_ptr,
            weight=self.row_weight,
            normalized=self.inputs.normalized,
            fully_adjacent=self.inputs.fully_adjacent,
        )

    def configuration(self, candidate: Candidate, task: str) -> dict[str, Any]:
        """All sections, nested."""
        sections = merged(
            {**candidate.settings, "model": candidate.model, "seed": self.seed}, self.settings
        )
        sections["device"] = self.device
        sections.setdefault("stopping", {}).setdefault("monitor", self.monitor)
        return {**sections, "task": {"name": task}}


@dataclass(frozen=True, eq=False)
class Attempt:
    """What became of a model that was tried: a row of a table.

    Attributes:
        name: The model.
        direction: Where nodes listen.
        score: Its quality on the validation rows, higher is better; `None` where it has none.
        seconds: How long it took.
        epochs: How many epochs it was trained; 0 in closed form.
        member: The model; `None` where it was stopped or diverged.
        note: Why, or what is to be said about it.
        history: The scores of each epoch.
        weight: Its share in the final average.
    """

    name: str
    direction: str
    score: float | None
    seconds: float
    epochs: int = 0
    member: Member | None = None
    note: str = ""
    history: Sequence[Mapping[str, Any]] = ()
    weight: float = 0.0


def fit_closed_form(problem: Problem, view: HopView, projection: Tensor | None) -> Attempt:
    """Fits ridge regression on the features of a view."""
    started = time.monotonic()
    model, score = fit_ridge(
        problem.inputs,
        problem.y,
        problem.parts,
        view,
        problem.quality,
        projection=projection,
        row_weight=problem.row_weight,
    )
    name = f"ridge ({view.name})"
    seconds = time.monotonic() - started
    return Attempt(name, view.direction, score, seconds, member=Member(name, model))


def train_candidate(
    problem: Problem,
    candidate: Candidate,
    *,
    folder: Path | None = None,
    deadline: Deadline = float("inf"),
    callbacks: Sequence[Callback] = (),
) -> Attempt:
    """Trains a candidate by the package's training loop.

    Args:
        problem: What is to be learnt.
        candidate: The network.
        folder: Where its run directory goes, whose name says which network and data it is about; a
            run that is there goes on. `None`: nothing is written.
        deadline: When to stop at the latest; a network that was not finished is not used.
        callbacks: Told about every step and epoch.
    """
    started = time.monotonic()
    stop = StopCallback(lambda: time.monotonic() > deadline)

    def attempt(**known: Any) -> Attempt:
        known = {"score": None, **known}
        return Attempt(
            candidate.name, candidate.direction, seconds=time.monotonic() - started, **known
        )

    with in_memory_task(problem.data(candidate.direction), problem.encoder.kind) as task:
        run_dir = None if folder is None else folder / f"{candidate.name}-{task}"
        config = resolve_config(problem.configuration(candidate, task))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                result = train(
                    config,
                    run_dir=run_dir,
                    resume=run_dir is not None,
                    evaluate_test=False,
                    callbacks=[*callbacks, stop],
                )
            except (DivergedError, NotEnoughMemoryError) as error:
                return attempt(note=str(error))
            except Interrupted:
                if time.monotonic() <= deadline:
                    raise  # somebody else asked for it
                return attempt(note="stopped: the time was over")
    if not isinstance(result.model, GraphNetwork):
        raise TypeError(f"the model is a {type(result.model).__name__}; expected GraphNetwork")
    model = NetworkModel(result.model.cpu(), candidate.direction)
    return attempt(
        score=_score(problem, model),
        epochs=result.epochs,
        member=Member(candidate.name, model),
        note="; ".join(str(warning.message) for warning in told),
        history=result.history,
    )


def _score(problem: Problem, model: NetworkModel) -> float:
    valid = problem.parts.valid
    return problem.quality.score(model.outputs(problem.inputs)[valid], problem.y[valid])


def search(
    problem: Problem,
    candidate: Candidate,
    folder: Path,
    deadline: Deadline,
    *,
    progress: Callable[[str], None] = lambda text: None,
) -> Attempt:
    """Searches around a candidate until the time is over, by a study of the package.

    A TPE search in this process, with the same training loop, early stopping and run directories as
    `adgn select`. The study's trial with the best validation score becomes the member.

    Args:
        problem: What is to be learnt.
        candidate: The network whose settings are searched.
        folder: Where the study is kept; it goes on with one that is there.
        deadline: When to stop; a trial under way is given up.
        progress: Told when it begins.
    """
    started = time.monotonic()
    name = f"{candidate.name}-search"
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    stop = threading.Event()
    timer = threading.Timer(max(0.0, deadline - started), stop.set)
    timer.daemon = True
    with (
        in_memory_task(problem.data(candidate.direction), problem.encoder.kind) as task,
        warnings.catch_warnings(),
    ):
        # A trial that learns nothing has a bad score, and that is all there is to say about it.
        warnings.simplefilter("ignore", LearnedNothingWarning)
        place = folder / f"{name}-{task}"
        place.mkdir(parents=True, exist_ok=True)
        base = resolve_config(problem.configuration(candidate, task))
        settings = base.model_dump(mode="json")
        solved = base.model.options.get("readout") == "ridge"
        definition = StudyDefinition(
            settings=settings,
            space_name="own",
            space=check_space(search_space(base.model.name, solved=solved), settings),
            protocol=Protocol(seeds=(problem.seed,)),
            search="tpe",
            trials=_PLANNED,
            seed=problem.seed,
        )
        url = sqlite_url(place)
        study = start_study(name, open_storage(url), definition)
        progress(f"searching around {candidate.name} until the time is over")
        timer.start()
        try:
            with shared_data():
                while not stop.is_set() and plan(study, definition):
                    work(WorkerSpec(name, url, str(place.resolve()), 0, 60, 600), stop)
                    trials = definition.budget + _PLANNED
                    definition = definition.model_copy(update={"trials": trials})
        finally:
            timer.cancel()
        if stop.is_set() and time.monotonic() < deadline:
            raise Interrupted("stopped on request while searching", 0)
        done = ranked(study.get_trials(deepcopy=False), definition)
        note = f"{len(done)} configurations tried"
        if not done:
            seconds = time.monotonic() - started
            return Attempt(name, candidate.direction, None, seconds, note=note)
        trial = choose(study, definition)[None]
        run = place / "runs" / trial.user_attrs["key"] / Run(problem.seed).name
        network = open_run(run).model.cpu()
    model = NetworkModel(network, candidate.direction)
    values = ", ".join(f"{key}={value}" for key, value in trial_params(trial).items())
    return Attempt(
        name,
        candidate.direction,
        _score(problem, model),
        time.monotonic() - started,
        epochs=int(trial.user_attrs["runs"][0]["epochs"] or 0),
        member=Member(name, model),
        note=f"{note}; {values}",
    )
