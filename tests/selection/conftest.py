"""A study of trials that take a fraction of a second, run in this process."""

from typing import Any

import pytest
import torch

from tests.selection.studies import InProcess, arguments


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
