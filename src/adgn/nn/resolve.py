"""Strings resolve to objects: `act="tanh"`, `level="node"`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn.resolver import activation_resolver

from adgn._util.suggestions import unknown_name

Activation = Callable[[Tensor], Tensor]

_ACTIVATIONS: Mapping[str, type[nn.Module]] = {
    "celu": nn.CELU,
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "hardtanh": nn.Hardtanh,
    "identity": nn.Identity,
    "leakyrelu": nn.LeakyReLU,
    "mish": nn.Mish,
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "selu": nn.SELU,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
    "tanh": nn.Tanh,
}


def resolve_activation(
    act: str | Activation | None, act_kwargs: Mapping[str, Any] | None = None
) -> Activation | None:
    """The activation of a name, a class or a callable; `None` stays `None` (identity).

    Names are those of torch's modules, upper or lower case, with or without underscores.

    Example:
        >>> resolve_activation("leaky_relu", {"negative_slope": 0.2})
        LeakyReLU(negative_slope=0.2)
    """
    if act_kwargs and not isinstance(act, str | type):
        raise ValueError(
            f"act_kwargs={dict(act_kwargs)!r} was given, but act={act!r} is no name or class that "
            "could take it"
        )
    if isinstance(act, str):
        name = act.lower().replace("_", "").replace(" ", "")
        if name in _ACTIVATIONS:
            return _build(_ACTIVATIONS[name], act_kwargs)
        try:
            resolved: nn.Module = activation_resolver(act, **(act_kwargs or {}))
            # The resolver also takes other modules that torch defines beside its activations.
            if resolved.eval()(torch.zeros(1, 4)).shape != (1, 4):
                raise ValueError
        except (ValueError, TypeError, NotImplementedError):
            raise unknown_name("act", act, _ACTIVATIONS) from None
        return resolved.train()
    if act is None or isinstance(act, nn.Module):
        return act
    if isinstance(act, type) and issubclass(act, nn.Module):
        return _build(act, act_kwargs)
    if callable(act) and not isinstance(act, type):
        return act
    raise TypeError(
        f"act is a {type(act).__name__}; expected a name such as 'tanh', a torch.nn.Module, "
        "a callable or None"
    )


def _build(kind: type[nn.Module], act_kwargs: Mapping[str, Any] | None) -> nn.Module:
    try:
        return kind(**(act_kwargs or {}))
    except TypeError as error:
        raise ValueError(
            f"act_kwargs={dict(act_kwargs or {})!r} does not fit {kind.__name__}: {error}"
        ) from None


def check_choice(argument: str, value: object, choices: Iterable[str]) -> None:
    """Raises unless `value` is one of the names in `choices`."""
    names = list(choices)
    if value not in names:
        raise unknown_name(argument, value, names)
