"""Functions that `torch.compile` must not look into."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch

Function = TypeVar("Function", bound=Callable[..., Any])


def eager(function: Function) -> Function:
    """Runs `function` as it is inside compiled code.

    Caches, native kernels and looks at values have no place in a compiled graph; the code around
    them has.
    """
    return cast(Function, torch.compiler.disable(function))  # type: ignore[no-untyped-call]
