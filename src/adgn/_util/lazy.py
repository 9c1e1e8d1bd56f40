"""Packages whose names are imported on first use, so that what needs no torch does not load it."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["lazy_exports"]


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
            return import_module(f"{package}.{original}")  # which also makes it an attribute
        value = getattr(import_module(source), original)
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
