"""A run directory: everything about one run, in files that are whole or absent.

config.toml        the resolved configuration; `adgn train --config` reruns it
metrics.jsonl      a line per epoch
best.safetensors   the weights of the best epoch
state/             the latest state from which the run can go on exactly
result.json        the scores, once the run is over
plugins.txt        a user's code that the run needs, a line each; there if it needs some
partition.json     of a graph that is spread over ranks: how many, and the file or the folder of
                   shards that says which rank has which nodes
partition-N.safetensors   that file, for N ranks
"""

import json
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import filelock
from torch import nn

from adgn._util.environment import environment
from adgn._util.files import check_is_file, finite_or_none, parse_json, remove_temporaries
from adgn._util.registry import loaded_plugins
from adgn.distributed.errors import RankError
from adgn.training.batches import Split
from adgn.training.checkpoint import (
    AppendedFile,
    StateStore,
    read_bytes,
    save_weights,
    sha256,
    write_atomically,
)
from adgn.training.config import (
    TrainConfig,
    config_differences,
    read_config,
    resolve_config,
    to_toml,
)
from adgn.training.errors import ConfigError, DamagedRunError, RunError
from adgn.training.metrics import Scores
from adgn.training.tasks import PublishedValue


@dataclass(frozen=True, eq=False)
class RunResult:
    """A finished run.

    Attributes:
        config: What was run.
        scores: For each split the scores of the best weights. The test split was looked at once,
            after training, or not at all (`evaluate_test=False`).
        best_epoch: The epoch of the best weights, from 1.
        epochs: How many epochs were run.
        stopped: `"patience"`, `"max_epochs"` or `"target"`; `"solved"` where the readout was solved
            in closed form.
        constant: The test scores of the best prediction that ignores the input.
        published: What the paper reports for this task and model, where it does.
        notes: What to know about the data before trusting a score.
        parameters: Trainable numbers per part of the model.
        seconds: Time spent in training, evaluation between epochs included.
        history: The scores of each epoch.
        model: The network with the best weights.
        run_dir: The run directory; `None` where nothing was written.
        transforms: What transforms did to the graph, in a line each.
    """

    config: TrainConfig
    scores: Mapping[Split, Scores]
    best_epoch: int
    epochs: int
    stopped: str
    constant: Mapping[str, float]
    published: PublishedValue | None
    notes: tuple[str, ...]
    parameters: Mapping[str, int]
    seconds: float
    history: list[dict[str, Any]]
    model: nn.Module
    run_dir: Path | None = None
    transforms: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """The test score that the task is judged by."""
        if "test" not in self.scores:
            raise ValueError("the test split was not looked at: the run had evaluate_test=False")
        return self.scores["test"][self.metric]

    @property
    def metric(self) -> str:
        """The name of that score."""
        return "log10_mse" if "log10_mse" in self.scores["train"] else "accuracy"

    def to_dict(self) -> dict[str, Any]:
        """The content of result.json."""
        return {
            "task": self.config.task.name,
            "model": self.config.model.name,
            "seed": self.config.seed,
            "metric": self.metric,
            "scores": self.scores,
            "constant_predictor": dict(self.constant),
            "published": None if self.published is None else asdict(self.published),
            "best_epoch": self.best_epoch,
            "epochs": self.epochs,
            "stopped": self.stopped,
            "seconds": round(self.seconds, 3),
            "seconds_per_epoch": round(self.seconds / max(self.epochs, 1), 6),
            "parameters": dict(self.parameters),
            "notes": list(self.notes),
            "transforms": list(self.transforms),
            "environment": environment(),
        }


# A state is not written again before this many times the time that the last one took.
_SAVE_COST = 40
_OWNERS = "partition-{}.safetensors"


class RunDirectory:
    """The files of one run.

    Args:
        path: The directory; it need not exist yet.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config_file = self.path / "config.toml"
        self.metrics_file = self.path / "metrics.jsonl"
        self.best_file = self.path / "best.safetensors"
        self.result_file = self.path / "result.json"
        self.plugins_file = self.path / "plugins.txt"
        self.partition_file = self.path / "partition.json"
        self.states = StateStore(self.path / "state")
        self._files = [self.config_file, self.metrics_file, self.best_file]
        self._files += [self.result_file, self.plugins_file]
        self._files.append(self.partition_file)
        self._lock_file = self.path / ".lock"

    def check_files(self) -> None:
        """Raises where a link, a pipe or a folder has the name of a file of the run."""
        try:
            for file in (*self._files, *self._owner_files(), self._lock_file):
                check_is_file(file)
            for folder in (self.states.folder, self.path / "tensorboard"):
                check_is_file(folder, folder=True)
        except OSError as error:
            raise RunError(
                f"{error.filename} cannot be used for a run: {error.strerror or error}; choose "
                "another run directory"
            ) from error

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Holds the directory; what a process that died left of its files is removed."""
        self.check_files()
        lock = filelock.FileLock(self._lock_file)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            raise RunError(
                f"{self.path} is in use by another process that is still running; wait for it, or "
                "choose another run directory"
            ) from None
        except OSError as error:
            raise RunError(f"cannot write to {self.path}: {error.strerror or error}") from error
        try:
            for file in self._files:
                remove_temporaries(file.parent, file.name)
            remove_temporaries(self.path, _OWNERS.format("*"))
            self.states.remove_leftovers()
            yield
        finally:
            lock.release()

    def remove_if_unused(self) -> None:
        """Removes the directory, should no run have begun in it and nothing else be there."""
        if not self.config_file.exists():
            self._lock_file.unlink(missing_ok=True)
            with suppress(OSError):  # not empty, or not there
                self.path.rmdir()

    def make(self) -> None:
        """Makes the directory, unless it holds something else than a run."""
        first = self.plugins_file.name  # written before config.toml, which a full disk may prevent
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            others = [
                entry.name
                for entry in self.path.iterdir()
                if not entry.name.startswith(".")
                and entry.name != first
                and not self.config_file.exists()
            ]
        except OSError as error:
            raise RunError(
                f"cannot make the run directory {self.path}: {error.strerror or error}; choose "
                "another one"
            ) from error
        if others:
            raise RunError(
                f"{self.path} exists and holds {others[0]!r}, but no run; choose a new or empty "
                "directory"
            )

    def begin(self, config: TrainConfig) -> None:
        """Writes the configuration, unless it is there already."""
        if not self.config_file.exists():
            if loaded_plugins():
                write_atomically(self.plugins_file, "\n".join(loaded_plugins()).encode() + b"\n")
            write_atomically(self.config_file, to_toml(config).encode())

    def keep_partition(self, parts: int, partition: str | bytes | None) -> None:
        """Remembers how the graph is spread: the content of a file, or a folder of shards.

        A process that is killed here leaves the partition of before, or the new one: files of
        different numbers of ranks have different names, and partition.json names one of them.
        """
        if partition is None:
            return
        if isinstance(partition, bytes):
            where = _OWNERS.format(parts)
            write_atomically(self.path / where, partition)
        else:
            where = str(Path(partition).resolve())
        text = json.dumps({"parts": parts, "partition": where})
        write_atomically(self.partition_file, text.encode() + b"\n")
        for file in self._owner_files():
            if file.name != where:
                file.unlink()

    def _owner_files(self) -> list[Path]:
        """Partitions of any number of ranks; a kill can leave two."""
        return sorted(self.path.glob(_OWNERS.format("*")))

    def partition_of(self, parts: int, given: str) -> str:
        """The partition that the run had with so many ranks, where `"auto"` is given.

        Raises:
            RankError: The run had shards, and those of another number of ranks: each rank would
                read the whole graph, which may be too large for it.
        """
        if given != "auto" or parts == 1 or not self.partition_file.exists():
            return given
        try:
            kept = parse_json(read_bytes(self.partition_file, "give --partition"))
            before, where = int(kept["parts"]), str(kept["partition"])
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedRunError(
                f"{self.partition_file} is damaged ({error}); remove it and give --partition"
            ) from error
        if before == parts:
            return str(self.path / where)
        if not Path(where).is_absolute():  # a file of the run; folders of shards lie elsewhere
            return given
        raise RankError(
            f"the run in {self.path} has shards of {before} ranks ({where}), and there are {parts} "
            f"ranks now; take --workers {before}, or write shards with `adgn partition TASK "
            f"--parts {parts} --shards FOLDER` and give --partition FOLDER, or let each rank read "
            "the whole graph with --partition ldg (or metis, blocks)"
        )

    def refuse_other(self, config: TrainConfig) -> None:
        """Raises where a run with another configuration is there."""
        if not self.config_file.exists():
            return
        if differences := _differences(self.config(), config):
            raise RunError(
                f"{self.path} holds a run with another configuration ({differences}); choose "
                "another run directory"
            )

    def refuse_existing(self) -> None:
        """Raises where a run is there already, with what to do about it."""
        self.check_files()
        if self.result_file.exists():
            raise RunError(
                f"{self.path} holds a finished run; look at it with `adgn evaluate {self.path}`, "
                "or choose another run directory"
            )
        if self.config_file.exists():
            raise RunError(
                f"{self.path} holds a run that is not finished; go on with `adgn resume "
                f"{self.path}`, or choose another run directory"
            )

    def config(self) -> TrainConfig:
        """The configuration of the run."""
        self.check_files()
        if not self.config_file.exists():
            raise RunError(
                f"{self.path} is not a run directory: it has no config.toml; start a run with "
                "`adgn train`"
            )
        try:
            with self.missing_plugins_named():
                return resolve_config(read_config(self.config_file))
        except ConfigError as error:
            raise DamagedRunError(f"{self.config_file} cannot be used: {error}") from error

    @contextmanager
    def missing_plugins_named(self) -> Iterator[None]:
        """An error in here names the plugins of the run that are not loaded, if there are any."""
        try:
            yield
        except (ConfigError, ValueError) as error:
            known = self.plugins_file.exists()
            names = read_bytes(self.plugins_file, "start the run again") if known else b""
            missing = [n for n in names.decode().splitlines() if n not in loaded_plugins()]
            if not missing:
                raise
            options = " ".join(f"--plugin {name}" for name in missing)
            raise RunError(
                f"the run in {self.path} was made with the plugin {', '.join(missing)}, which is "
                f"not loaded: give {options}, or call adgn.load_plugin ({error})"
            ) from error

    def check_weights(self, config: TrainConfig, about: Mapping[str, Any]) -> None:
        """Raises unless best.safetensors, by its metadata, was trained with the configuration."""
        if "config" not in about:
            return  # an earlier version wrote it
        if differences := _differences(config, about["config"]):
            raise DamagedRunError(
                f"{self.config_file} does not belong to {self.best_file} ({differences}); put back "
                "the file that was changed, or start a new run with this configuration"
            )

    def metrics_digest(self) -> str:
        """The SHA-256 of metrics.jsonl."""
        return sha256(read_bytes(self.metrics_file, "start the run again"))

    def history(self, digest: str | None = None) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl, which must have this SHA-256 where it is known."""
        if not self.metrics_file.exists() and digest is None:
            return []
        content = read_bytes(self.metrics_file, "start the run again")
        if digest is not None and sha256(content) != digest:
            raise DamagedRunError(
                f"{self.metrics_file} is not the file that was written with "
                f"{self.result_file.name}; put the original back, or start the run again"
            )
        try:
            return [parse_json(line) for line in content.decode().splitlines()]
        except ValueError as error:
            raise DamagedRunError(f"{self.metrics_file} is damaged: {error}") from error

    def result(self) -> dict[str, Any] | None:
        """What result.json says; `None` while the run is not over."""
        if not self.result_file.exists():
            return None
        try:
            result: dict[str, Any] = parse_json(read_bytes(self.result_file, "resume the run"))
        except ValueError as error:
            raise DamagedRunError(f"{self.result_file} is damaged: {error}") from error
        if result.pop("sha256", None) != _digest(result):
            raise DamagedRunError(
                f"{self.result_file} does not have the checksum that it was written with; put the "
                "original back, or remove it and resume the run"
            )
        return result

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Writes result.json: the run is over."""
        content = json.loads(json.dumps(finite_or_none(dict(result)), allow_nan=False))
        text = json.dumps({**content, "sha256": _digest(content)}, indent=2)
        write_atomically(self.result_file, text.encode() + b"\n")

    def load_state(self, config: TrainConfig) -> dict[str, Any] | None:
        """The latest state; `None` where the run was stopped before there was one."""
        if not self.states.exists():
            return None
        state = self.states.load()
        if differences := _differences(config, state["config"]):
            raise RunError(
                f"{self.config_file} does not belong to the state in {self.states.folder} "
                f"({differences}); put the file back, or start a new run with it"
            )
        return state


class Checkpointer:
    """Writes the scores and states of a run into its directory.

    Args:
        directory: The run directory, locked.
        config: The configuration of the run.
        metrics: From a state: how many bytes of metrics.jsonl belong to it, and their digest.
    """

    def __init__(
        self, directory: RunDirectory, config: TrainConfig, metrics: Mapping[str, Any] | None = None
    ) -> None:
        self.directory = directory
        self.config = config
        known = metrics or {"length": 0, "sha256": None}
        self.metrics = AppendedFile(directory.metrics_file, known["length"], known["sha256"])
        self._saved_epoch = -1
        self._next_time = -math.inf
        self._best_epoch: int | None = None

    def record(self, line: Mapping[str, Any]) -> None:
        """Adds a line to metrics.jsonl."""
        self.metrics.append(strict_json(line))

    def due(self, epoch: int) -> bool:
        """Whether it is time for a state; asked after every step."""
        when = self.config.checkpoint
        if when.every_epochs and epoch >= self._saved_epoch + when.every_epochs:
            return True
        return when.every_seconds is not None and time.monotonic() >= self._next_time

    def save(self, state: Mapping[str, Any]) -> None:
        """Replaces the state; what metrics.jsonl has so far belongs to it."""
        started = time.monotonic()
        length, digest = self.metrics.sync()
        self.directory.states.save(
            {
                "trainer": state,
                "metrics": {"length": length, "sha256": digest},
                "config": self.config.model_dump(mode="json"),
            }
        )
        self.save_best(state["best_weights"], state["stopping"]["best_epoch"])
        ended = time.monotonic()
        self._saved_epoch = state["progress"]["epoch"]
        wait = self.config.checkpoint.every_seconds or 0.0
        self._next_time = ended + (max(wait, _SAVE_COST * (ended - started)) if wait else 0.0)

    def save_best(self, weights: Mapping[str, Any] | None, epoch: int | None) -> None:
        """Writes best.safetensors if the best epoch is another one than last time."""
        if weights is None or epoch == self._best_epoch:
            return
        about = {
            "task": self.config.task.name,
            "model": self.config.model.name,
            "epoch": epoch,
            "config": essential_settings(self.config),
        }
        save_weights(self.directory.best_file, weights, about)
        self._best_epoch = epoch


def strict_json(line: Mapping[str, Any]) -> str:
    """JSON that every reader takes: where a score is not finite, `null`."""
    try:
        return json.dumps(line, allow_nan=False)
    except ValueError:
        return json.dumps(finite_or_none(line), allow_nan=False)


def essential_settings(config: TrainConfig) -> dict[str, Any]:
    """The settings that must not change in the course of a run, as JSON has them.

    Where to compute and to look for data, and when states are written, may.
    """
    settings: dict[str, Any] = config.model_dump(exclude={"device", "checkpoint"}, mode="json")
    settings["task"].pop("root", None)
    return settings


def _differences(left: TrainConfig, right: TrainConfig | Mapping[str, Any]) -> str:
    """The first settings in which two configurations differ; empty where none does.

    A setting that was added after `right` was written has its default there.
    """
    try:
        found = config_differences(
            essential_settings(left), essential_settings(resolve_config(right))
        )
    except ConfigError as error:  # another version wrote it, or it is damaged
        return str(error)
    return "; ".join(found[:3]) + (" …" if len(found) > 3 else "")


def _digest(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode())
