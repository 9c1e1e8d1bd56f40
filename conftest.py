"""Settings for every test, the examples in docstrings and documents included."""

import os
from collections.abc import Iterator

import pytest
import torch

torch.sparse.check_sparse_tensor_invariants.enable()


@pytest.fixture(autouse=True)
def plugins_of_one_test_alone() -> Iterator[None]:
    """A plugin that a test loads is named to the processes of that test, not to later ones."""
    before = os.environ.get("ADGN_PLUGINS")
    yield
    if before is None:
        os.environ.pop("ADGN_PLUGINS", None)
    else:
        os.environ["ADGN_PLUGINS"] = before
