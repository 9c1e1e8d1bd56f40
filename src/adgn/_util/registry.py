"""Things by name that code of the package, and of users, makes known."""

import importlib
import threading
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from adgn._util.plugins import load_plugins
from adgn._util.suggestions import unknown_name

__all__ = ["Registry", "provide"]

Item = TypeVar("Item")
_PROVIDERS: dict[str, tuple[str, ...]] = {}
_THREAD = threading.local()


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
