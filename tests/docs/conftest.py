from tests.browser import chromium  # noqa: F401 - a fixture
