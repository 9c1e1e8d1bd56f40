import importlib
import sys

import pytest

import adgn
import adgn.data
import adgn.training

PACKAGE = """
from typing import TYPE_CHECKING

from adgn._util.lazy import lazy_exports

if TYPE_CHECKING:
    from lazily import below
    from lazily.below import value
    from json import loads as read
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = ["below", "read", "value"]
"""


@pytest.fixture
def lazily(tmp_path, monkeypatch):
    folder = tmp_path / "lazily"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    (folder / "below.py").write_text("value = object()")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("lazily")
    for name in ("lazily", "lazily.below"):
        sys.modules.pop(name, None)


def test_names_are_imported_on_first_use(lazily):
    assert "lazily.below" not in sys.modules
    assert lazily.value is sys.modules["lazily.below"].value
    assert lazily.below is sys.modules["lazily.below"]
    assert lazily.read("[1]") == [1]
    assert dir(lazily) == ["below", "read", "value"]


def test_a_name_that_is_not_there(lazily):
    with pytest.raises(AttributeError, match="module 'lazily' has no attribute 'other'"):
        _ = lazily.other


@pytest.mark.parametrize("package", [adgn, adgn.data, adgn.training])
def test_all_is_what_can_be_had(package):
    for name in package.__all__:
        assert getattr(package, name) is not None
