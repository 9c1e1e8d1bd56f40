"""From the options of a command to the ranks that train."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from adgn.distributed.ranks import Ranks
    from adgn.training import RunResult, TrainConfig

_EXECUTORS = ("local", "ray")


@dataclass(frozen=True)
class RankOptions:
    """The options of `adgn train` and `adgn resume` that say who trains."""

    workers: int | None
    threads: int | None
    executor: str
    ray_address: str | None
    partition: str
    timeout: float
    prepare_timeout: float

    @property
    def _limits(self) -> dict[str, Any]:
        return {"timeout": self.timeout, "prepare_timeout": self.prepare_timeout}

    @contextmanager
    def ranks(self, config: "TrainConfig") -> Iterator["Ranks"]:
        """The ranks that this process is one of; of those in Ray it is none."""
        from adgn.distributed.ranks import ALONE
        from adgn.training.launch import check_counts, in_torchrun, local_ranks, torchrun_ranks

        if self.executor not in _EXECUTORS:
            raise typer.BadParameter(
                f"{self.executor!r} is not one of {', '.join(_EXECUTORS)}", param_hint="--executor"
            )
        if self.ray_address is not None and self.executor != "ray":
            raise typer.BadParameter("it needs --executor ray", param_hint="--ray-address")
        workers = 1 if self.workers is None else self.workers
        check_counts(workers, self.threads, **self._limits)
        if in_torchrun():
            if self.workers is not None or self.executor != "local":
                raise typer.BadParameter(
                    "the ranks are those of torchrun; give their number there",
                    param_hint="--workers" if self.workers is not None else "--executor",
                )
            with torchrun_ranks(config, **self._limits) as ranks:
                yield ranks
        elif self.executor == "ray" or workers == 1:
            yield ALONE
        else:
            options: dict[str, Any] = {"threads": self.threads, **self._limits}
            with local_ranks(workers, config, partition=self.partition, **options) as ranks:
                yield ranks

    def placed(
        self, run: "Callable[..., RunResult]", config: "TrainConfig", folder: Path
    ) -> "Callable[..., RunResult]":
        """The run as it is, or with its ranks in Ray."""
        if self.executor == "local":
            return run
        from adgn.training.ray_ranks import train_on_ray

        return partial(
            train_on_ray,
            config,
            folder,
            workers=self.workers or 1,
            threads=self.threads or 1,
            address=self.ray_address,
            partition=self.partition,
            **self._limits,
        )
