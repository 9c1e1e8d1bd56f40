import importlib
import sys
import threading

import pytest

import adgn
import adgn.data
import adgn.training
from adgn._util.registry import Registry, provide

PACKAGE = """
from typing import TYPE_CHECKING

from adgn._util.registry import lazy_exports

if TYPE_CHECKING:
    from lazily import below
    from lazily.below import value
    from json import loads as read
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = ["below", "read", "value"]
"""


@pytest.fixture
def provider(tmp_path, monkeypatch):
    """A module that registers the colour red; it is imported at the first look-up."""
    code = "import time\nfrom test_colours import COLOURS\ntime.sleep(0.1)\nCOLOURS.add('red', 1)\n"
    (tmp_path / "colours_of_the_package.py").write_text(code)
    (tmp_path / "test_colours.py").write_text(
        "from adgn._util.registry import Registry\nCOLOURS = Registry('test colour', 'colour')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    provide("test colour", "colours_of_the_package")
    import test_colours

    yield test_colours.COLOURS
    provide("test colour")
    for name in ("colours_of_the_package", "test_colours"):
        sys.modules.pop(name, None)


def test_the_first_look_up_imports_what_registers(provider):
    assert "colours_of_the_package" not in sys.modules
    assert "red" in provider
    assert "colours_of_the_package" in sys.modules
    assert list(provider.items()) == [("red", 1)]


def test_a_name_of_the_package_is_taken_before_anything_was_looked_up(provider):
    with pytest.raises(ValueError, match=r"a test colour named 'red' is registered already"):
        provider.add("red", 2)


def test_threads_wait_for_what_one_of_them_imports(provider):
    found = []
    threads = [threading.Thread(target=lambda: found.append(provider.find("red"))) for _ in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 4


def test_names_come_and_go():
    colours = Registry("nobody's colour", "colour")
    colours.add("green", 3)
    colours.remove("green")
    assert len(colours) == 0
    with pytest.raises(ValueError, match=r"colour='green' is not known"):
        colours.remove("green")
    with pytest.raises(ValueError, match=r"colour=3 is not known"):
        colours.find(3)


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
