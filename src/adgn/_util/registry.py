"""Things by name that are loaded at their first use: registries, users' plugins, lazy packages.

Plugins are files and modules of users that register models, aggregations and tasks. Those of the
environment variable `ADGN_PLUGINS` and of the entry-point group `adgn.plugins` are loaded at the
first look-up of a name, in every process. Worker processes inherit the variable.
"""

import ast
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from adgn._util.suggestions import unknown_name

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Item = TypeVar("Item")
_PROVIDERS: dict[str, tuple[str, ...]] = {}
_THREAD = threading.local()

VARIABLE = "ADGN_PLUGINS"  # files and modules, separated as in PATH
GROUP = "adgn.plugins"
_LOADING = threading.RLock()
_loaded: dict[str, None] = {}  # in order
_under_way: set[str] = set()
_installed: "list[EntryPoint] | None" = None  # those of other packages, still to be loaded


def provide(kind: str, *modules: str) -> None:
    """Names modules, of later rooms, that register things of a kind: imported at first look-up."""
    _PROVIDERS[kind] = modules


class Registry(Mapping[str, Item], Generic[Item]):
    """Things of one kind by name; `argument` is what a name is given for, in errors.

    The first look-up imports the modules of the package that register some (`provide`), and the
    user's plugins.

    Example:
        >>> colours = Registry("colour", "colour")
        >>> colours.add("red", "#f00")
        >>> colours.find("red"), "green" in colours
        ('#f00', False)
        >>> colours.find("rde")
        Traceback (most recent call last):
        ValueError: colour='rde' is not known. Did you mean 'red'? Choose one of: red.
        >>> colours.add("red", "#e00")
        Traceback (most recent call last):
        ValueError: a colour named 'red' is registered already; choose another name, or call ...
    """

    def __init__(self, kind: str, argument: str) -> None:
        self.kind = kind
        self.argument = argument
        self._items: dict[str, Item] = {}
        self._loaded = False

    def add(self, name: str, item: Item) -> None:
        """Makes an item known; raises `ValueError` where the name is taken."""
        self._load_own()  # before others, so that it is they who are told of a name that is taken
        if name in self._items:
            raise ValueError(
                f"a {self.kind} named {name!r} is registered already; choose another name, or call "
                f"unregister_{self.kind}({name!r}) first to replace it"
            )
        self._items[name] = item

    def remove(self, name: str) -> None:
        """Forgets an item, so that its name is free; raises `ValueError` where there is none."""
        self.find(name)
        del self._items[name]

    def find(self, name: str) -> Item:
        """The item of this name; raises `ValueError` with the nearest name where there is none."""
        items = self._all()
        if not isinstance(name, str) or name not in items:
            raise unknown_name(self.argument, name, items)
        return items[name]

    def __getitem__(self, name: str) -> Item:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, Item]:
        self._load_own()
        load_plugins()
        return self._items

    def _load_own(self) -> None:
        # No lock besides that of imports, which knows deadlocks: another thread waits there.
        loading: set[str] = _THREAD.__dict__.setdefault("loading", set())
        if self._loaded or self.kind in loading:  # the modules themselves register and look up
            return
        loading.add(self.kind)
        try:
            for module in _PROVIDERS.get(self.kind, ()):
                importlib.import_module(module)
            self._loaded = True
        finally:
            loading.remove(self.kind)


def lazy_exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package that is being imported.

    The names are those that its `__init__.py` imports below `if TYPE_CHECKING:`, read from the
    source, so that each is written once and type checkers see the same as programs.

    Example:
        ```python
        if TYPE_CHECKING:
            from adgn.training.trainer import Trainer
        else:
            __getattr__, __dir__ = lazy_exports(__name__)
        ```
    """
    module = sys.modules[package]
    origins = _type_checking_imports(module.__spec__.loader.get_source(package))  # type: ignore

    def get(name: str) -> Any:
        if name not in origins:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        source, original = origins[name]
        if source == package:
            return importlib.import_module(
                f"{package}.{original}"
            )  # which also makes it an attribute
        value = getattr(importlib.import_module(source), original)
        setattr(module, name, value)
        return value

    return get, lambda: sorted(module.__all__)


def _type_checking_imports(source: str) -> dict[str, tuple[str, str]]:
    """Name -> (module, name there) of `from … import …` below `if TYPE_CHECKING:`."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


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
