"""Numbers as JSON can hold them."""

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["finite_or_none"]


def finite_or_none(value: Any) -> Any:
    """The value with `None` in place of every number that is not finite, in lists and mappings too.

    Example:
        >>> finite_or_none({"loss": 0.5, "scores": [float("nan"), 1.0]})
        {'loss': 0.5, 'scores': [None, 1.0]}
    """
    if isinstance(value, Mapping):
        return {key: finite_or_none(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_none(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
