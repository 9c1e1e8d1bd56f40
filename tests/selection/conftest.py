"""A study of trials that take a fraction of a second, run in this process."""

from typing import Any

import pytest
import torch

from adgn.selection import select
from tests.selection.studies import LONG, InProcess, arguments, finished


@pytest.fixture
def in_process():
    """An executor that is one worker in this process; torch's threads stay as they were."""
    before = torch.get_num_threads()
    yield InProcess()
    torch.set_num_threads(before)


@pytest.fixture
def tiny(tmp_path, in_process) -> dict[str, Any]:
    """Arguments of `select` for a grid of four configurations, two runs each."""
    return arguments(tmp_path / "tiny", in_process)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The scores of the long study when nothing happens to it, and its result."""
    folder = tmp_path_factory.mktemp("undisturbed")
    before = torch.get_num_threads()
    result = select(**LONG, folder=folder, executor=InProcess())
    torch.set_num_threads(before)
    return finished(folder, "long"), result
