"""JSON that somebody else may have written."""

import json
from typing import Any

__all__ = ["parse_json"]

DEEPEST = 100


def parse_json(text: str | bytes) -> Any:
    """What a JSON text holds; every text that holds nothing is a `ValueError`.

    Files of this package are nested a few levels deep. Much deeper ones would end in a
    `RecursionError`, here or wherever they are walked through.

    Example:
        >>> parse_json(b'{"a": [1]}')
        {'a': [1]}
        >>> parse_json("[" * 101 + "]" * 101)
        Traceback (most recent call last):
        ValueError: it is nested more than 100 levels deep
    """
    too_deep = ValueError(f"it is nested more than {DEEPEST} levels deep")
    try:
        content = json.loads(text)
    except RecursionError:
        raise too_deep from None
    level = [content]
    for _ in range(DEEPEST):
        level = [item for value in level for item in _inside(value)]
        if not level:
            return content
    raise too_deep


def _inside(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
