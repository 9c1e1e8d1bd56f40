"""Plugins: files and modules of users that register models, aggregations and tasks.

Those of the environment variable `ADGN_PLUGINS` and of the entry-point group `adgn.plugins` are
loaded at the first look-up of a name, in every process. Worker processes inherit the variable.
"""

import importlib
import os
import sys
import threading
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "VARIABLE", "PluginError", "load_plugin", "load_plugins", "loaded_plugins"]

VARIABLE = "ADGN_PLUGINS"  # files and modules, separated as in PATH
GROUP = "adgn.plugins"
_LOADING = threading.RLock()
_loaded: dict[str, None] = {}  # in order
_under_way: set[str] = set()
_installed: "list[EntryPoint] | None" = None  # those of other packages, still to be loaded


class PluginError(RuntimeError):
    """A plugin cannot be loaded."""


def load_plugin(source: str | Path) -> None:
    """Loads a user's code that registers models, aggregations or tasks, here and in all workers.

    Worker processes that are started from now on, local ones and those of Ray, load it as well. A
    plugin that is loaded already is not loaded again.

    Args:
        source: A Python file, which may import others from its folder, or an importable module.

    Example:
        >>> import tempfile
        >>> import adgn
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "hello.py"
        ...     _ = file.write_text("print('hello')")
        ...     adgn.load_plugin(file)
        hello
    """
    name = _absolute(str(source))
    if not name or os.pathsep in name:
        raise PluginError(
            f"plugin={str(source)!r} is not valid; give a file or a module without {os.pathsep!r}, "
            f"which parts the names in {VARIABLE}"
        )
    load_plugins()
    _load(name)
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys([*_named(), name]))


def load_plugins() -> None:
    """Loads the plugins that the environment names and those that are installed, once each."""
    global _installed
    if _installed != []:
        from importlib.metadata import entry_points  # it takes long to import

        with _LOADING:
            if _installed is None:
                _installed = list(entry_points(group=GROUP))
            for point in list(_installed):
                _load(point.value.partition(":")[0], point)
                if point in _installed:  # it may have looked up names, which brings us here too
                    _installed.remove(point)
    names = _named()
    if names:
        os.environ[VARIABLE] = os.pathsep.join(names)  # absolute: workers have other folders
    for name in names:
        _load(name)


def loaded_plugins() -> list[str]:
    """The plugins of this process: absolute paths of files, and names of modules."""
    return list(_loaded)


def _named() -> list[str]:
    return [_absolute(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]


def _absolute(source: str) -> str:
    is_file = source.endswith(".py") or os.sep in source
    return str(Path(source).expanduser().resolve()) if is_file else source


def _load(name: str, point: "EntryPoint | None" = None) -> None:
    if name in _loaded:
        return
    with _LOADING:
        if name in _loaded or name in _under_way:  # it looks up names itself
            return
        _under_way.add(name)
        try:
            if point is not None:
                point.load()
            elif os.sep in name:
                _import_file(Path(name))
            else:
                importlib.import_module(name)
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"the plugin {name} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        finally:
            _under_way.discard(name)
        _loaded[name] = None


def _import_file(file: Path) -> None:
    """Imports a file under its own name, so that a later `import` finds the same module."""
    if not file.is_file():
        raise FileNotFoundError("there is no such file")
    name, known = file.stem, sys.modules.get(file.stem)
    if known is not None:
        if getattr(known, "__file__", None) and Path(str(known.__file__)).resolve() == file:
            return
        name = f"adgn_plugin_{file.stem}"
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError("it is not a Python file; give one whose name ends in .py")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    sys.modules[name] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _after_fork() -> None:
    """In a child: another thread of the parent may have held the lock."""
    global _LOADING
    _LOADING = threading.RLock()
    _under_way.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
