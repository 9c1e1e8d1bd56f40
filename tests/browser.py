"""A browser for the tests that look at pages."""

import os
import shutil

import pytest


@pytest.fixture(scope="module")
def chromium():
    """A headless Chromium; where CI=true one must be there."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI needs Chromium for the tests of pages; .ci/run installs it")
        pytest.skip("no Chromium here; install the package chromium to test pages in a browser")
    from playwright.sync_api import sync_playwright

    # Chromium's own sandbox cannot be set up by root; the only pages opened are our own files.
    quiet = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=quiet)
        yield browser
        browser.close()
