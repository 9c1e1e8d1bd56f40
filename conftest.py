"""Settings for every test, the examples in docstrings and documents included."""

import gc
import os
from collections.abc import Iterator

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Before any test file is read, in the processes that run tests.

    With several of them the first process only hands out tests: it does without torch, whose
    import takes seconds in which the others have not begun.
    """
    worker = "PYTEST_XDIST_WORKER" in os.environ
    if not worker and session.config.getoption("numprocesses", None):
        return
    if worker:  # they share the cores; one thread each keeps them from fighting
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # for programs that tests start, too
    import torch

    torch.sparse.check_sparse_tensor_invariants.enable()
    if worker:
        torch.set_num_threads(1)
    gc.disable()  # reading test files makes millions of objects, and all of them stay


def pytest_collection_finish() -> None:
    """What is there by now need not be looked at in later collections of garbage."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def plugins_of_one_test_alone() -> Iterator[None]:
    """A plugin that a test loads is named to the processes of that test, not to later ones."""
    before = os.environ.get("ADGN_PLUGINS")
    yield
    if before is None:
        os.environ.pop("ADGN_PLUGINS", None)
    else:
        os.environ["ADGN_PLUGINS"] = before
