import pytest

from adgn.report import read_results
from tests.browser import chromium  # noqa: F401 - a fixture
from tests.report.sample import build_results


@pytest.fixture(scope="session")
def sample_folder(tmp_path_factory):
    """A results directory with all kinds of experiment and cell; not to be changed."""
    return build_results(tmp_path_factory.mktemp("results") / "laptop")


@pytest.fixture(scope="session")
def sample(sample_folder):
    return read_results(sample_folder)
