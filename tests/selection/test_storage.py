import inspect
import threading
import time
import traceback

import optuna
import pytest
import sqlalchemy
from optuna.storages import RDBStorage
from optuna.trial import TrialState, create_trial
from sqlalchemy.engine import make_url

from adgn.selection import StorageError
from adgn.selection.storage import (
    QueueEmpty,
    has_password,
    open_storage,
    shown_url,
    sqlite_url,
    storage_errors,
)


@pytest.fixture
def url(tmp_path):
    return sqlite_url(tmp_path)


def study_in(url, **options):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = open_storage(url, **options)
    return optuna.create_study(study_name="s", storage=storage, load_if_exists=True)


def test_an_empty_queue_gives_no_trial(url):
    study = study_in(url)
    with pytest.raises(QueueEmpty):
        study.optimize(lambda trial: 0.0, n_trials=1)
    assert study.get_trials() == []


def test_many_workers_take_every_trial_once(url):
    count, workers = 24, 4
    planner = study_in(url)
    for number in range(count):
        planner.enqueue_trial({"x": number})
    taken, errors = [], []

    def take():
        try:
            study = study_in(url)
            while True:
                study.optimize(
                    lambda trial: taken.append(trial.number) or trial.suggest_int("x", 0, count),
                    n_trials=1,
                )
        except QueueEmpty:
            pass
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=take) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(taken) == list(range(count))
    assert {trial.state for trial in planner.get_trials()} == {TrialState.COMPLETE}


def test_several_may_set_up_a_storage_at_once(tmp_path):
    """A look at a study must not break the driver that is just making its tables."""
    errors = []
    for number in range(2):
        new = f"sqlite:///{tmp_path / str(number)}.db"
        together = threading.Barrier(4)

        def set_up(new=new, together=together):
            together.wait()
            try:
                study_in(new)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=set_up) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []


def test_a_trial_without_any_sign_of_life_comes_back(url):
    lost = []
    study = study_in(url, heartbeat=1, grace=2, on_stale=lambda _, trial: lost.append(trial.number))
    # Taken by a worker that died before its first heartbeat.
    study.add_trial(create_trial(state=TrialState.RUNNING))
    limit = time.monotonic() + 60
    while not lost and time.monotonic() < limit:
        with pytest.raises(QueueEmpty):
            study.optimize(lambda trial: 0.0, n_trials=1)
        time.sleep(0.2)
    assert lost == [0]
    assert study.get_trials()[0].state == TrialState.FAIL


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "is not a database URL"),
        ("sqlite://", "is in memory"),
        ("sqlite:////no/such/folder/study.db", "cannot use the storage"),
        ("nosuchdialect://host/db", "driver for the storage"),
    ],
)
def test_a_storage_that_cannot_be_used(url, message):
    with pytest.raises(StorageError, match=message):
        open_storage(url)


def test_an_unreachable_server_does_not_tell_the_password():
    pytest.importorskip("psycopg", reason="the PostgreSQL driver, adgn[postgresql], is missing")
    with pytest.raises(StorageError, match=r"cannot use the storage postgresql\+psycopg") as error:
        open_storage("postgresql+psycopg://me:secret@127.0.0.1:1/db")
    assert "secret" not in str(error.value)


def test_a_worker_makes_no_file_of_its_own(tmp_path):
    with pytest.raises(StorageError, match="share the study's folder"):
        open_storage(sqlite_url(tmp_path), must_exist=True)
    assert list(tmp_path.iterdir()) == []


def test_signs_of_life_must_be_shorter_than_the_grace(url):
    with pytest.raises(StorageError, match="1 <= heartbeat < grace"):
        open_storage(url, heartbeat=5, grace=5)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:SECRET@host/db", "postgresql://me:***@host/db"),
        (
            "postgresql://host/db?user=me&password=SECRET",
            "postgresql://host/db?password=***&user=me",
        ),
        ("postgresql://host/db?PassWord=SECRET", "postgresql://host/db?PassWord=***"),
        ("postgresql://host/db?pasword=SECRET", "postgresql://host/db?pasword=***"),
        (
            "postgresql://host/db?passfile=SECRET&passfile=SECRET2",
            "postgresql://host/db?passfile=***",
        ),
        # Slips that leave the password, or a part of it, where something else belongs.
        ("postgresql:///me:SECRET@host/db", "postgresql://***"),
        ("postgresql://me@SECRET@host/db", "postgresql://***"),
        ("postgresql://me:a@SECRET@host/db", "postgresql://***"),
        ("postgresql://host/me:SECRET", "postgresql://***"),
        ("postgresql://host/db?user=me;password=SECRET", "postgresql://***"),
        ("postgresql://host/db?user=me?password=SECRET", "postgresql://***"),
        ("postgresql://host/db?user=me,password=SECRET", "postgresql://***"),
        ("postgresql://host/db&password=SECRET", "postgresql://***"),
        ("postgresql://host/db password=SECRET", "postgresql://***"),
        ("postgresql://host/db?host=other password=SECRET", "postgresql://***"),
    ],
)
def test_a_password_is_hidden_wherever_it_stands(url, shown):
    assert has_password(url)
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@host:5432/db?sslmode=require&user=me",
        "postgresql://me@/db?host=%2Ftmp%2Fsocket",
        "sqlite:////a@b/c:d.db",
    ],
)
def test_a_url_without_a_secret_is_shown_whole(url):
    assert not has_password(url)
    assert make_url(shown_url(url)) == make_url(url)


def test_an_empty_password_is_none():
    assert not has_password("postgresql://me:@host/db")
    assert shown_url("postgresql://me:@host/db") == "postgresql://me@host/db"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql+psycopg://me:SECRET@host:port/db", r"'postgresql\+psycopg://\*\*\*' .*port"),
        ("postgresql://me:SECRET", r"'postgresql://\*\*\*' is not a database URL"),
        ("postgresql+psycopg//me:SECRET@host/db", r"'\*\*\*' is not a database URL"),
        ("postgresql:/me:SECRET@host/db", r"'\*\*\*' is not a database URL"),
        ("me:SECRET@host/db", r"'\*\*\*' is not a database URL"),
    ],
)
def test_a_url_with_a_typo_is_not_shown_whole(url, shown):
    with pytest.raises(StorageError, match=shown) as error:
        open_storage(url)
    whole = "".join(traceback.format_exception(error.value))
    assert "SECRET" not in whole


def test_what_a_database_says_is_shown_without_the_password():
    url = "postgresql://host/db?password=SECRET"
    told = sqlalchemy.exc.OperationalError("", {}, ValueError("no user for SECRET\nmore"))
    expected = pytest.raises(StorageError, match=r"cannot use .*: no user for \*\*\*; ")
    with expected as error, storage_errors(url):
        raise told
    assert "SECRET" not in str(error.value)


def test_what_a_database_says_of_a_url_with_a_slip_is_not_shown():
    told = sqlalchemy.exc.OperationalError("", {}, ValueError("failed to resolve 'RET@host'"))
    url = "postgresql://me:SEC@RET@host/db"
    with pytest.raises(StorageError, match="ValueError") as error, storage_errors(url):
        raise told
    assert "RET" not in str(error.value)


def test_a_file_that_is_no_database_is_told(url, tmp_path):
    (tmp_path / "study.db").write_bytes(b"no database" * 1000)
    with pytest.raises(StorageError, match=r"not a database; .* move it away and start the study"):
        open_storage(url, must_exist=True)


def test_optuna_still_calls_the_private_methods_that_are_overridden(url, monkeypatch):
    """They are no part of its interface: a new version may rename them without a word."""
    expected = {
        "_create_new_trial": ["self", "study_id", "template_trial"],
        "_get_stale_trial_ids": ["self", "study_id"],
    }
    called = []
    for name, parameters in expected.items():
        method = getattr(RDBStorage, name)
        assert [*inspect.signature(method).parameters] == parameters

        def noted(self, *arguments, method=method, name=name):
            called.append(name)
            return method(self, *arguments)

        monkeypatch.setattr(RDBStorage, name, noted)
    study = study_in(url, heartbeat=1, grace=2)
    study.enqueue_trial({"x": 1})
    study.optimize(lambda trial: trial.suggest_int("x", 0, 1), n_trials=1)
    assert called == ["_create_new_trial", "_get_stale_trial_ids"]
