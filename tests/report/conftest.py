import os
import shutil

import pytest

from adgn.report import read_results
from tests.report.sample import build_results


@pytest.fixture(scope="session")
def sample_folder(tmp_path_factory):
    """A results directory with all kinds of experiment and cell; not to be changed."""
    return build_results(tmp_path_factory.mktemp("results") / "laptop")


@pytest.fixture(scope="session")
def sample(sample_folder):
    return read_results(sample_folder)


@pytest.fixture(scope="module")
def chromium():
    """A headless Chromium; where CI=true one must be there."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI needs Chromium for the report's tests; .ci/run installs it")
        pytest.skip("no Chromium here; install the package chromium to test the page in a browser")
    from playwright.sync_api import sync_playwright

    # Chromium's own sandbox cannot be set up by root; the only page opened is our own file.
    quiet = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=quiet)
        yield browser
        browser.close()
