"""Where a study lives: a database that several workers share without losing or doubling a trial."""

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import NullPool

from adgn.selection.errors import StorageError

HEARTBEAT_SECONDS = 10
GRACE_SECONDS = 60
_LOCK_SECONDS = 120.0  # how long a process waits for the others' writes to an SQLite file
_CONNECT_SECONDS = 10
_SET_UP_ATTEMPTS = 10
# What SQLite, PostgreSQL and MySQL say of a table or row that somebody else has just made.
_MADE_BY_ANOTHER = re.compile("already exists|UNIQUE constraint failed|[Dd]uplicate (key|entry)")
# What may be shown of a URL's query. Any other value may be a password, if only by a typo.
_PLAIN_QUERY = (
    *("application_name", "charset", "connect_timeout", "dbname", "host", "mode"),
    *("port", "sslmode", "timeout", "uri", "user"),
)
_HIDDEN = "***"
# Of a database that does not answer, or whose pages or entries are damaged.
_DATABASE_ERRORS = (sqlalchemy.exc.SQLAlchemyError, StorageInternalError)
_STORAGE_FAILURES = (*_DATABASE_ERRORS, json.JSONDecodeError, UnicodeDecodeError)

StaleCallback = Callable[[Study, FrozenTrial], None]


class QueueEmpty(Exception):  # noqa: N818 - it is an answer, not a mistake
    """No trial is waiting to be run."""


class QueueStorage(RDBStorage):
    """A database whose waiting trials are the study's whole plan: `ask` never invents one.

    Optuna's heartbeat finds trials whose worker has died. It does not see a worker that died
    between taking a trial and its first heartbeat; this class does, by watching such trials for
    the same time. With SQLite every transaction takes the write lock at its start: otherwise two
    workers could both read a trial as waiting and both take it.
    """

    def __init__(
        self, url: str, heartbeat: int, grace: int, on_stale: StaleCallback | None
    ) -> None:
        super().__init__(
            url,
            engine_kwargs=_engine_options(_parsed(url)),
            grace_period=grace,
            heartbeat_stale_trial_callback=on_stale,
        )
        # As an attribute, for as an argument Optuna calls it experimental on every start.
        self.heartbeat_interval = heartbeat
        self._grace = grace
        self._silent_since: dict[int, float] = {}
        if self.engine.dialect.name == "sqlite":
            begin = "BEGIN IMMEDIATE"  # with the write lock
            listen = sqlalchemy.event.listen
            listen(self.engine, "connect", lambda raw, _: setattr(raw, "isolation_level", None))
            listen(self.engine, "begin", lambda connection: connection.exec_driver_sql(begin))

    def _create_new_trial(
        self, study_id: int, template_trial: FrozenTrial | None = None
    ) -> FrozenTrial:
        # Optuna's cache, which it puts before every database, calls this and not the public one.
        if template_trial is None:
            raise QueueEmpty
        return super()._create_new_trial(study_id, template_trial)

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        stale: list[int] = super()._get_stale_trial_ids(study_id)
        return [*stale, *(n for n in self._without_heartbeat(study_id) if n not in stale)]

    def _without_heartbeat(self, study_id: int) -> Sequence[int]:
        trials = self.get_all_trials(study_id, deepcopy=False, states=(TrialState.RUNNING,))
        running = {trial._trial_id for trial in trials}
        with self.engine.connect() as connection:
            rows = connection.execute(sqlalchemy.text("SELECT trial_id FROM trial_heartbeats"))
            silent = running - {row[0] for row in rows}
        now = time.monotonic()
        # Replaced as a whole: threads that do this at once only read what is there.
        before = self._silent_since
        self._silent_since = after = {n: before.get(n, now) for n in silent}
        return [n for n, since in after.items() if now - since > self._grace]


def sqlite_url(folder: Path) -> str:
    """The storage of a study that is kept in its folder."""
    return f"sqlite:///{(folder / 'study.db').resolve()}"


def open_storage(
    url: str,
    *,
    heartbeat: int = HEARTBEAT_SECONDS,
    grace: int = GRACE_SECONDS,
    on_stale: StaleCallback | None = None,
    must_exist: bool = False,
) -> QueueStorage:
    """Connects to a storage: `sqlite:///…`, `postgresql+psycopg://…` or `mysql…`.

    A trial without a sign of life for `grace` seconds is lost, of which `on_stale` is told. With
    `must_exist`, an SQLite file must be there already.
    """
    if heartbeat < 1 or grace <= heartbeat:
        raise StorageError(
            f"heartbeat={heartbeat}, grace={grace} is not valid; give whole seconds with "
            "1 <= heartbeat < grace"
        )
    parsed = _parsed(url)
    if must_exist and parsed.get_backend_name() == "sqlite":
        file = Path(parsed.database or "")
        if not file.is_file():
            raise StorageError(
                f"there is no {file} on this machine; share the study's folder between all "
                "machines, or keep the study in a database server: --storage postgresql+psycopg://…"
            )
    try:
        return _set_up(lambda: QueueStorage(url, heartbeat, grace, on_stale))
    except (*_STORAGE_FAILURES, ImportError, RuntimeError) as error:
        raise _unusable(url, error) from error  # also: no driver; tables of another Optuna


@contextmanager
def storage_errors(url: str) -> Iterator[None]:
    """Whatever goes wrong with a storage inside is a `StorageError` that says what to do."""
    try:
        yield
    except _STORAGE_FAILURES as error:
        raise _unusable(url, error) from error


def _unusable(url: str, error: Exception) -> StorageError:
    if isinstance(error, ImportError | sqlalchemy.exc.NoSuchModuleError):
        return StorageError(
            f"the driver for the storage {shown_url(url)} is not installed ({_cause(error, url)}); "
            "for PostgreSQL: pip install 'adgn[postgresql]' and a URL postgresql+psycopg://…"
        )
    if _parsed(url).get_backend_name() == "sqlite":
        remedy = "check the path and the disk; put a damaged file back from a copy, or move it "
        remedy += "away and start the study anew, which uses the finished runs in its folder"
    else:
        remedy = "check the URL, and that the server runs and lets this machine in; a study that "
        remedy += "has begun goes on with the same command"
    return StorageError(f"cannot use the storage {shown_url(url)}: {_cause(error, url)}; {remedy}")


def _set_up(connect: Callable[[], QueueStorage]) -> QueueStorage:
    """Connects, again where another process made the same tables in the same moment."""
    for attempt in range(1, _SET_UP_ATTEMPTS):
        try:
            return connect()
        except _DATABASE_ERRORS as error:
            if not _MADE_BY_ANOTHER.search(f"{error} {error.__cause__}"):
                raise
        time.sleep(0.1 * attempt)
    return connect()


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (sqlalchemy.exc.ArgumentError, ValueError) as error:
        port = " its port is not a number;" if isinstance(error, ValueError) else ""
        # Without the cause, which may show what stands where the password or port should be.
        raise StorageError(
            f"storage={shown_url(url)!r} is not a database URL;{port} write one such as "
            "sqlite:///study.db or postgresql+psycopg://user@host:5432/database"
        ) from None
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise StorageError(
            f"storage={shown_url(url)!r} is in memory, where no worker can see it; name a file"
        )
    return parsed


def _engine_options(url: URL) -> dict[str, Any]:
    backend = url.get_backend_name()
    # No connection is kept between two transactions: workers are minutes apart, and many of them
    # would use up what a server allows.
    options: dict[str, Any] = {"poolclass": NullPool}
    if backend == "sqlite":
        options["connect_args"] = {"timeout": _LOCK_SECONDS}
    elif backend in ("postgresql", "mysql", "mariadb"):
        options["connect_args"] = {"connect_timeout": _CONNECT_SECONDS}
    return options


def _cause(error: BaseException, url: str) -> str:
    """The first line of what the database said, without what `shown_url` hides."""
    if isinstance(error, StorageInternalError) and error.__cause__ is not None:
        error = error.__cause__
    cause = getattr(error, "orig", None) or error
    text = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
    if _misplaced(make_url(url)):  # what it says may hold a piece of the password
        return type(cause).__name__
    for secret in _secrets(make_url(url)):
        text = text.replace(secret, _HIDDEN)
    return text


def shown_url(url: str) -> str:
    """A storage URL without its password, wherever that stands; to be shown and written down.

    Of what is not a URL, or has a part in a wrong place, only the scheme is shown.

    Example:
        >>> shown_url("postgresql://host/db?user=me&password=secret")
        'postgresql://host/db?password=***&user=me'
        >>> shown_url("postgresql://me:secret@host:port/db")
        'postgresql://***'
    """
    try:
        parsed = make_url(url)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        parsed = None
    if parsed is None or _misplaced(parsed):
        scheme = re.match(r"[A-Za-z][\w+.-]*://", url)
        return f"{scheme[0]}{_HIDDEN}" if scheme else _HIDDEN
    query = {key: value if key in _PLAIN_QUERY else _HIDDEN for key, value in parsed.query.items()}
    text = parsed.set(query=query).render_as_string(hide_password=True)
    if not parsed.password:  # nothing to hide, and so it must not look like it
        text = text.replace(f":{_HIDDEN}@", "@", 1)
    return text.replace("%2A%2A%2A", _HIDDEN)


def has_password(url: str) -> bool:
    """Whether a storage URL holds a password, or something else that `shown_url` hides."""
    parsed = _parsed(url)
    return bool(_secrets(parsed)) or _misplaced(parsed)


def _secrets(url: URL) -> list[str]:
    return [secret for secret in (url.password, *_query_values(url, plain=False)) if secret]


def _query_values(url: URL, *, plain: bool) -> list[str]:
    values = [value for key, value in url.query.items() if (key in _PLAIN_QUERY) == plain]
    return [part for value in values for part in ([value] if isinstance(value, str) else value)]


def _misplaced(url: URL) -> bool:
    """Whether a part may hold a piece of the password, as after a slip with a sign."""
    names = [url.username or "", url.host or ""]
    if not url.drivername.startswith("sqlite"):  # whose database is a path
        names.append((url.database or "").replace(":", "@"))
    names += _query_values(url, plain=True)
    return any(sign in name for name in names for sign in "@=&;?, ")
