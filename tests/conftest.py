"""Fixtures and settings that all tests share."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests import warm

if TYPE_CHECKING:  # the process that hands out tests does without torch
    from adgn.graph.native.library import NativeLibrary

# Programs that tests start in processes of their own; there are no examples to collect in them.
collect_ignore = ["helpers"]

# Where CI's load varies, a time limit per example says nothing about the code.
settings.register_profile("adgn", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=3000)  # `make fuzz`
settings.load_profile("adgn")


@pytest.fixture(scope="session")
def raw_datasets() -> Path:
    """The folder with the raw files of the node data sets; tests that need it skip without it."""
    folder = os.environ.get("ADGN_TEST_DATASETS")
    if not folder:
        pytest.skip("set ADGN_TEST_DATASETS to a folder with the raw node data sets to run this")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"ADGN_TEST_DATASETS={folder} is not a folder")
    return path


@pytest.fixture(scope="session")
def data_root(raw_datasets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A writable data root whose raw files are links, so that nothing is written beside them."""
    root = tmp_path_factory.mktemp("data")
    for raw in raw_datasets.rglob("raw"):
        link = root / raw.relative_to(raw_datasets)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(raw, target_is_directory=True)
    return root


@pytest.fixture
def warm_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes that this process starts begin with all imports done."""
    monkeypatch.setattr("adgn._util.processes.subprocess", warm.WARM)


@pytest.fixture
def native() -> "Iterator[NativeLibrary]":
    """The native kernels, forced; tests of them skip where they are not built or switched off."""
    from adgn.graph import backend, set_backend
    from adgn.graph.native.library import load_library

    library = load_library()
    if isinstance(library, str) or backend().name == "torch":
        pytest.skip(f"native kernels not in use: {backend().reason}")
    with set_backend("native"):
        yield library
