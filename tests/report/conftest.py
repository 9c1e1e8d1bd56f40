import pytest

from adgn.report import read_results, write_report
from tests.browser import chromium  # noqa: F401 - a fixture
from tests.report.sample import build_results


@pytest.fixture(scope="session")
def sample_folder(tmp_path_factory):
    """A results directory with all kinds of experiment and cell; not to be changed."""
    return build_results(tmp_path_factory.mktemp("results") / "laptop")


@pytest.fixture(scope="session")
def sample(sample_folder):
    return read_results(sample_folder)


@pytest.fixture(scope="session")
def report(sample, tmp_path_factory):
    """The report of the sample, written once; not to be changed."""
    return write_report(sample, tmp_path_factory.mktemp("report") / "out")
