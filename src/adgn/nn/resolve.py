"""Strings resolve to objects: `act="tanh"`, `level="node"`."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn.resolver import activation_resolver

from adgn._util.suggestions import unknown_name

Activation = Callable[[Tensor], Tensor]
KnownActivation = Literal["identity", "tanh", "relu"]  # those that the fused integration knows

_ACTIVATIONS: dict[str, type[nn.Module]] = {
    kind.__name__.lower(): kind
    for kind in (
        *(nn.CELU, nn.ELU, nn.GELU, nn.Hardtanh, nn.Identity, nn.LeakyReLU, nn.Mish),
        *(nn.ReLU, nn.ReLU6, nn.SELU, nn.Sigmoid, nn.SiLU, nn.Softplus, nn.Tanh),
    )
}
_KNOWN: dict[Any, KnownActivation] = {
    **dict.fromkeys((None, nn.Identity), "identity"),
    **dict.fromkeys((nn.Tanh, torch.tanh, Tensor.tanh), "tanh"),
    **dict.fromkeys((nn.ReLU, torch.relu, Tensor.relu, nn.functional.relu), "relu"),
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
    if isinstance(act, type) and issubclass(act, nn.Module):
        return _build(act, act_kwargs)
    if act is None or (callable(act) and not isinstance(act, type)):
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


def known_activation(act: Activation | None) -> KnownActivation | None:
    """The activation's name where its slope is known here; a module with hooks is unknown."""
    if not isinstance(act, nn.Module):
        return _KNOWN.get(act)
    return None if has_hooks(act) else _KNOWN.get(type(act))


def has_hooks(module: nn.Module) -> bool:
    """Whether the module has hooks, which must be called with it."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )
