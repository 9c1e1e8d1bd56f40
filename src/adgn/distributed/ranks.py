"""Ranks: processes that train one network together.

`Ranks` is a process alone, for which every sum is what it is. `ProcessRanks` is one of several,
over `torch.distributed`. What a rank says of itself (that it is there, what it would run, why it
ended) goes through the store that ranks meet at, so that a rank that is lost can be named.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, Store

from adgn.distributed.errors import LostRankError, RankError

DEFAULT_TIMEOUT = 300.0
DEFAULT_PREPARE_TIMEOUT = 3600.0
_POLL_SECONDS = 0.02
_BEAT_SECONDS = 0.5
_SILENCE_SECONDS = 3.0  # without a sign of life a rank is taken for lost, once an exchange failed
_END_SECONDS = 10.0
_PREFIX = "adgn"

Watch = Callable[[], str | None]


class Ranks:
    """A process that trains alone; the interface of several.

    Attributes:
        rank: The number of this one, from 0. Rank 0 writes what there is to write.
        size: How many there are.

    Example:
        >>> import torch
        >>> Ranks().sums([1.0, 2.0]), Ranks().size
        ([1.0, 2.0], 1)
    """

    rank: int = 0
    size: int = 1

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """Each number, added up over all ranks in double precision."""
        return list(numbers)

    def sum_gradients(self, parameters: Sequence[Tensor], numbers: Sequence[float]) -> list[float]:
        """Replaces the gradients of parameters by their sums over all ranks; `sums` of numbers."""
        return list(numbers)

    def gather(self, rows: Tensor) -> Tensor:
        """The rows `[n, columns]` of all ranks, in the order of ranks."""
        return rows

    def broadcast(self, data: bytes) -> bytes:
        """What rank 0 has."""
        return data

    def agree(self, facts: Mapping[str, str]) -> None:
        """Raises on every rank where one of these is not the same on all of them."""

    def report_activity(self, what: str) -> None:
        """Reports what this rank does, `"reading the data"`, to those that wait for it."""

    @contextmanager
    def reporting_errors(self) -> Iterator[None]:
        """An error in here is sent to the other ranks, which then end with it as the reason."""
        yield


class ProcessRanks(Ranks):
    """One of several processes, joined by `torch.distributed`.

    Args:
        store: Where ranks meet, see `torch.distributed.TCPStore`.
        rank: The number of this one.
        size: How many there are.
        device: What it computes on: exchanges go by NCCL between GPUs, by gloo elsewhere.
        timeout: Seconds that a rank waits for the others in an exchange.
        prepare_timeout: Seconds that it waits for a rank that is alive and prepares something, such
            as data, without reporting how far it is (`report_activity`).
        watch: Asked while waiting for others: why one of them is lost, or `None`. It is for a
            process that started the others and sees them end.
        joined: Whether `torch.distributed` was set up already, as Ray does.

    Use it as a context: at its end ranks part.
    """

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        *,
        device: torch.device | str = "cpu",
        timeout: float = DEFAULT_TIMEOUT,
        prepare_timeout: float = DEFAULT_PREPARE_TIMEOUT,
        watch: Watch | None = None,
        joined: bool = False,
    ) -> None:
        if not 0 <= rank < size:
            raise RankError(f"rank={rank} is not there among {size}; ranks count from 0")
        for name, value in (("timeout", timeout), ("prepare_timeout", prepare_timeout)):
            if not value > 0:
                raise RankError(f"{name}={value} is not valid; give seconds above 0")
        self.rank, self.size = rank, size
        self.device = torch.device(device)
        if self.device.type == "cuda":
            if not (joined or dist.is_nccl_available()):
                raise RankError(
                    f"device={device!r}: this torch has no NCCL, by which ranks on GPUs exchange; "
                    "use device='cpu', or a torch that has it"
                )
            torch.cuda.set_device(self.device)  # what a plain "cuda" means from here on
        self.timeout = timeout
        self.prepare_timeout = prepare_timeout
        self._watch = watch
        self._activity = (0, "starting")
        self._store = PrefixStore(_PREFIX, store)
        self._end = threading.Event()
        self._rounds = 0
        self._error_reported = False
        self._set("joined", "")
        threading.Thread(target=self._beat, daemon=True).start()
        try:
            self._await("joined", "start")
            if not joined:
                backend = "nccl" if self.device.type == "cuda" else "gloo"
                dist.init_process_group(
                    backend,
                    store=PrefixStore(f"{_PREFIX}/group", store),
                    rank=rank,
                    world_size=size,
                    timeout=timedelta(seconds=timeout),
                )
        except RankError:
            self._end.set()
            raise
        except RuntimeError as error:
            self._end.set()
            raise RankError(f"rank {rank} cannot connect to the others: {error}") from error
        self._owns_group = not joined

    def __enter__(self) -> "ProcessRanks":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._report_error(error)
        self.close(wait=error is None)

    def close(self, *, wait: bool = True) -> None:
        """Parts from the others; with `wait` not before all of them are through."""
        with suppress(RuntimeError, RankError):
            self._set("done", "")
            if wait:
                self._await("done", "end", limit=_END_SECONDS)
        self._end.set()
        if self._owns_group and dist.is_initialized():
            with suppress(RuntimeError):
                dist.destroy_process_group()

    # Exchanges.

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """See `Ranks`."""
        total = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        with self.exchanging("a sum"):
            dist.all_reduce(total)
        return total.tolist()

    def sum_gradients(self, parameters: Sequence[Tensor], numbers: Sequence[float]) -> list[float]:
        """See `Ranks`: one vector for all gradients, added up in an order that the ranks fix."""
        if not parameters:
            return self.sums(numbers)
        total = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        flat = _flat_gradients(parameters, self.device)
        with self.exchanging("the sum of gradients"):
            # Both are under way at once: ranks wait for each other once in a step.
            for work in [dist.all_reduce(vector, async_op=True) for vector in (total, flat)]:
                work.wait()
        *sums, flags = torch.split(flat, [*(p.numel() for p in parameters), len(parameters)])
        for parameter, gradient, flag in zip(parameters, sums, flags.tolist(), strict=True):
            # What no rank has a gradient for is left out by the optimiser, as in one process.
            given = gradient.view_as(parameter).to(parameter.dtype)
            parameter.grad = given if flag else None
        return total.tolist()

    def gather(self, rows: Tensor) -> Tensor:
        """See `Ranks`."""
        shape = torch.tensor(rows.shape, device=self.device)
        shapes = [torch.empty_like(shape) for _ in range(self.size)]
        with self.exchanging("a gathering of outputs"):
            dist.all_gather(shapes, shape)
            counts = [tuple(each.tolist()) for each in shapes]
            most = max(count for count, _ in counts)
            columns = max(width for _, width in counts)
            padded = rows.new_zeros(most, columns)
            padded[: rows.size(0), : rows.size(1)] = rows
            parts = [torch.empty_like(padded) for _ in range(self.size)]
            dist.all_gather(parts, padded)
        return torch.cat([part[:count] for part, (count, _) in zip(parts, counts, strict=True)])

    def broadcast(self, data: bytes) -> bytes:
        """See `Ranks`."""
        length = torch.tensor([len(data)], device=self.device)
        with self.exchanging("a broadcast"):
            dist.broadcast(length, src=0)
            content = torch.empty(int(length), dtype=torch.uint8)
            if self.rank == 0 and data:
                content = torch.frombuffer(bytearray(data), dtype=torch.uint8)
            content = content.to(self.device)
            dist.broadcast(content, src=0)
        return content.cpu().numpy().tobytes()

    @contextmanager
    def exchanging(self, what: str) -> Iterator[None]:
        """An exchange that fails in here raises `RankError` with the rank that is lost."""
        try:
            yield
        except RuntimeError as error:  # all that torch.distributed raises
            if isinstance(error, RankError):
                raise
            raise self._lost(what, error) from error

    # What ranks report of themselves.

    def agree(self, facts: Mapping[str, str]) -> None:
        """See `Ranks`. It waits while all others are alive and say how far they are."""
        self._rounds += 1
        key = f"facts{self._rounds}"
        self._set(key, json.dumps(dict(facts)))
        found = self._await(key, "check that they do the same")
        for name, own in json.loads(found[0]).items():
            for rank, text in enumerate(found):
                other = json.loads(text).get(name)
                if other != own:
                    raise RankError(
                        f"ranks differ in {name}: rank 0 has {own}, rank {rank} {other}; give all "
                        "ranks the same"
                    )

    def report_activity(self, what: str) -> None:
        """See `Ranks`."""
        self._activity = (self._activity[0] + 1, what)

    @contextmanager
    def reporting_errors(self) -> Iterator[None]:
        """See `Ranks`."""
        try:
            yield
        except BaseException as error:
            self._report_error(error)
            raise

    def _report_error(self, error: BaseException) -> None:
        """Leaves the reason for the others, once; that another one is lost they see themselves."""
        if self._error_reported or isinstance(error, LostRankError):
            return
        self._error_reported = True
        with suppress(RuntimeError):
            self._set("failed", f"{type(error).__name__}: {error}")

    def _set(self, key: str, value: str) -> None:
        self._store.set(f"{key}/{self.rank}", value or "-")

    def _get(self, key: str, rank: int) -> str | None:
        name = f"{key}/{rank}"
        if not self._store.check([name]):
            return None
        return bytes(self._store.get(name)).decode()

    def _beat(self) -> None:
        number = 0
        with suppress(RuntimeError):  # the store is gone: so is who holds it
            while not self._end.wait(_BEAT_SECONDS if number else 0):
                number += 1
                count, what = self._activity
                self._set("beat", f"{number}/{count}/{what}")

    def _await(self, key: str, what: str, limit: float | None = None) -> list[str]:
        """What all ranks have said, waited for while those that have not are alive and at work."""
        heartbeats = _Heartbeats(self)
        started = time.monotonic()
        while True:
            try:
                # Asked first: who failed over what all have said leaves its reason after it, and
                # this rank is then to find the same by itself.
                reason = self._known_reason()
                found = [self._get(key, rank) for rank in range(self.size)]
                missing = [rank for rank, text in enumerate(found) if text is None]
                if not missing:
                    return [text for text in found if text is not None]
                heartbeats.update(missing)
                silent = heartbeats.longest_silent(missing)
                unchanged = heartbeats.longest_unchanged(missing)
            except RuntimeError as error:
                raise LostRankError(
                    f"rank {self.rank} cannot reach the store that ranks meet at; the process "
                    f"that holds it is gone ({_first_line(error)})"
                ) from error
            waited = time.monotonic() - started
            if reason is None and silent and silent[1] > self.timeout:
                reason = f"no sign of life from rank {silent[0]} for {silent[1]:.0f} s"
            if reason is None and unchanged and unchanged[1] > self.prepare_timeout:
                rank, seconds, activity = unchanged
                reason = (
                    f"rank {rank} is alive, but has been {activity} for {seconds:.0f} s without "
                    "reporting progress; if it is at work and does not hang, give a longer "
                    f"--prepare-timeout (now {self.prepare_timeout:g})"
                )
            if reason is None and limit is not None and waited > limit:
                reason = f"rank {missing[0]} was not there within {limit:g} s"
            if reason is not None:
                raise LostRankError(f"ranks cannot {what}: {reason}")
            time.sleep(_POLL_SECONDS)

    def _known_reason(self) -> str | None:
        """Why a rank ended, where that is known."""
        seen = None if self._watch is None else self._watch()
        for rank in range(self.size):
            if rank != self.rank and (text := self._get("failed", rank)) is not None:
                return f"rank {rank} failed: {text}"
        return seen

    def _lost(self, what: str, error: Exception) -> LostRankError:
        """Which rank is missing from an exchange that failed, and why if that can be known."""
        start = f"{what} between {self.size} ranks failed: "
        end = ". The run goes on from its last state"
        others = [rank for rank in range(self.size) if rank != self.rank]
        try:
            self._set("left", "")
            heartbeats, started = _Heartbeats(self), time.monotonic()
            while time.monotonic() - started < _SILENCE_SECONDS:
                reason = self._known_reason()
                if reason is not None:
                    return LostRankError(f"{start}{reason}{end}")
                there = [r for r in others if self._get("left", r) is None]
                heartbeats.update(there)
                if not there:
                    break
                time.sleep(_POLL_SECONDS)
            there = [rank for rank in others if self._get("left", rank) is None]
            quiet = [rank for rank in there if not heartbeats.seen_alive(rank)]
            if quiet:
                reason = f"rank {quiet[0]} gives no sign of life: it was killed, hangs, or its "
                return LostRankError(f"{start}{reason}machine is lost{end}")
            if there:
                reason = f"rank {there[0]} is alive, but was not there within {self.timeout:g} s"
                return LostRankError(f"{start}{reason}; give a longer time limit{end}")
        except RuntimeError as unreachable:
            reason = f"the store that ranks meet at is gone ({_first_line(unreachable)})"
            return LostRankError(f"{start}{reason}{end}")
        return LostRankError(f"{start}{_first_line(error)}{end}")


class _Heartbeats:
    """When other ranks last gave a sign of life, and when their activity last changed."""

    def __init__(self, ranks: ProcessRanks) -> None:
        self._ranks = ranks
        self._beats: dict[int, tuple[str, float]] = {}
        self._activities: dict[int, tuple[str, float]] = {}
        self._seen_alive: set[int] = set()

    def update(self, ranks: Sequence[int]) -> None:
        """Looks at what these have reported; the other methods say what was seen."""
        now = time.monotonic()
        for rank in ranks:
            beat, _, activity = (self._ranks._get("beat", rank) or "").partition("/")
            before = self._beats.get(rank)
            if before is None or before[0] != beat:
                if before is not None:
                    self._seen_alive.add(rank)
                self._beats[rank] = (beat, now)
            if rank not in self._activities or self._activities[rank][0] != activity:
                self._activities[rank] = (activity, now)

    def longest_silent(self, ranks: Sequence[int]) -> tuple[int, float] | None:
        """The one of these that was silent for longest, and for how many seconds."""
        now = time.monotonic()
        return max(((r, now - self._beats[r][1]) for r in ranks), key=lambda x: x[1], default=None)

    def longest_unchanged(self, ranks: Sequence[int]) -> tuple[int, float, str] | None:
        """The one with the same activity for longest, for how many seconds, and which."""
        if not ranks:
            return None
        rank = min(ranks, key=lambda one: self._activities[one][1])
        activity, since = self._activities[rank]
        return rank, time.monotonic() - since, activity.partition("/")[2] or "starting"

    def seen_alive(self, rank: int) -> bool:
        """Whether a rank gave a sign of life since this was made."""
        return rank in self._seen_alive


def _flat_gradients(parameters: Sequence[Tensor], device: torch.device) -> Tensor:
    """All gradients one after the other, zero where there is none, and which there are."""
    dtype = torch.float32
    for parameter in parameters:
        dtype = torch.promote_types(dtype, parameter.dtype)
    given = torch.tensor([p.grad is not None for p in parameters], dtype=dtype, device=device)
    gradients = [
        p.new_zeros(p.numel()) if p.grad is None else p.grad.detach().reshape(-1)
        for p in parameters
    ]
    return torch.cat([*(gradient.to(dtype) for gradient in gradients), given])


def _first_line(error: Any) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0]


ALONE = Ranks()
