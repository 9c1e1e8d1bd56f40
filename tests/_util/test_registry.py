import sys
import threading

import pytest

from adgn._util.registry import Registry, provide


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
