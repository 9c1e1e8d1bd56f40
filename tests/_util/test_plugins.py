import os
import subprocess
import sys
import threading
from importlib.metadata import EntryPoint

import pytest

from adgn._util import registry
from adgn._util.registry import PluginError, load_plugin, load_plugins, loaded_plugins
from tests.forks import needs_fork, status_of_child


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """What a test loads is forgotten after it."""
    monkeypatch.setenv(registry.VARIABLE, "")
    monkeypatch.setattr(registry, "_loaded", {})
    monkeypatch.setattr(registry, "_installed", [])
    monkeypatch.setattr(sys, "path", list(sys.path))
    modules = set(sys.modules)
    yield
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def write(folder, name, text):
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_a_file_is_loaded_once_and_named_for_workers(tmp_path, capsys, monkeypatch):
    write(tmp_path, "beside_own_code.py", "VALUE = 7")
    write(tmp_path, "own_code.py", "import beside_own_code; print(beside_own_code.VALUE)")
    monkeypatch.chdir(tmp_path)
    load_plugin("own_code.py")
    load_plugin(tmp_path / "own_code.py")
    load_plugins()
    assert capsys.readouterr().out == "7\n"
    file = str((tmp_path / "own_code.py").resolve())
    assert loaded_plugins() == [file]
    assert os.environ[registry.VARIABLE] == file


def test_a_file_that_was_imported_is_the_same_module(tmp_path, capsys, monkeypatch):
    file = write(tmp_path, "imported_before.py", "print('once')")
    monkeypatch.syspath_prepend(tmp_path)
    import imported_before  # noqa: F401

    load_plugin(file)
    assert capsys.readouterr().out == "once\n"
    assert loaded_plugins() == [str(file.resolve())]


def test_a_file_may_have_the_name_of_another_module(tmp_path, capsys):
    load_plugin(write(tmp_path, "json.py", "print('mine')"))
    import json

    assert capsys.readouterr().out == "mine\n"
    assert json.loads("1") == 1


def test_the_environment_names_plugins_for_every_process(tmp_path):
    first = write(tmp_path, "first_plugin.py", "print('first')")
    write(tmp_path, "second_plugin.py", "print('second')")
    program = "from adgn.training import TASKS; assert 'sssp' in TASKS; assert 'x' not in TASKS"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            registry.VARIABLE: f"{first}{os.pathsep}second_plugin",
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        },
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert done.stdout == "first\nsecond\n"


def test_installed_packages_bring_plugins(tmp_path, monkeypatch, capsys):
    write(tmp_path, "installed_plugin.py", "print('installed')")
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("mine", "installed_plugin", registry.GROUP)
    monkeypatch.setattr(registry, "_installed", None)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point])
    load_plugins()
    load_plugins()
    assert capsys.readouterr().out == "installed\n"
    assert loaded_plugins() == ["installed_plugin"]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("broken.py", "1 / 0", "ZeroDivisionError: division by zero"),
        ("nothing.py", None, "FileNotFoundError: there is no such file"),
        ("needs.py", "import not_there_at_all", "ModuleNotFoundError: No module named"),
        ("text.md", "# words", "ImportError: it is not a Python file; give one .* in .py"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_named_with_the_reason(tmp_path, name, text, why):
    file = tmp_path / name
    if text is not None:
        file.write_text(text)
    for _ in range(2):  # nothing of a failure is remembered
        with pytest.raises(PluginError, match=rf"the plugin .*{name} cannot be loaded: {why}"):
            load_plugin(file)
    assert loaded_plugins() == []
    assert os.environ[registry.VARIABLE] == ""


def test_a_module_that_cannot_be_loaded_is_named():
    with pytest.raises(PluginError, match="the plugin no_such_module cannot be loaded: ModuleNot"):
        load_plugin("no_such_module")


def test_a_plugin_that_ends_the_program_is_told(tmp_path):
    file = write(tmp_path, "ends.py", "import sys; sys.exit(3)")
    with pytest.raises(PluginError, match=r"ends.py cannot be loaded: SystemExit: 3"):
        load_plugin(file)


@pytest.mark.parametrize("name", ["", f"a{os.pathsep}b.py"])
def test_a_name_that_workers_could_not_read_is_refused(name):
    with pytest.raises(PluginError, match="is not valid; give a file or a module without"):
        load_plugin(name)


def test_an_installed_plugin_is_loaded_before_any_thread_goes_on(tmp_path, monkeypatch):
    write(tmp_path, "slow_plugin.py", "import time; time.sleep(0.3); LOADED = True")
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("slow", "slow_plugin", registry.GROUP)
    monkeypatch.setattr(registry, "_installed", [point])
    seen = []

    def look():
        load_plugins()
        seen.append(hasattr(sys.modules.get("slow_plugin"), "LOADED"))

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True, True, True]


@needs_fork
def test_a_process_forked_while_a_plugin_is_loaded_can_load(tmp_path):
    held = threading.Event()
    release = threading.Event()

    def hold():
        with registry._LOADING:
            held.set()
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    file = write(tmp_path, "in_child.py", "")
    try:
        assert status_of_child(lambda: load_plugin(file)) == 0
    finally:
        release.set()
        thread.join()
