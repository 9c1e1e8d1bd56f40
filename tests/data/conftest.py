"""Fixtures of the data tests."""

import os
from pathlib import Path

import pytest

from adgn.data import GraphPropertyDataset


@pytest.fixture(scope="session")
def property_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data root with the paper's whole property data set, made once for all test processes."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    root = shared / "property"
    GraphPropertyDataset(root)
    return root
