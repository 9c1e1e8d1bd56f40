"""Checks of what a user passes in: each names the argument, the value and the fix."""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from adgn._util.suggestions import unknown_name

INTEGER_TYPES = (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8)


class NonFiniteError(ValueError):
    """A tensor has a NaN or an infinity: wrong data, or a computation that diverged.

    Attributes:
        argument: The name of that tensor.
    """

    argument = ""


def check_edge_index(edge_index: Tensor, num_nodes: int) -> None:
    """Raises unless `edge_index` is an integer `[2, E]` tensor of nodes below `num_nodes`."""
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(
            f"edge_index has shape {list(edge_index.shape)}; expected [2, num_edges], "
            "sources in the first row and targets in the second"
        )
    if edge_index.dtype not in INTEGER_TYPES:
        raise TypeError(
            f"edge_index has dtype {edge_index.dtype}; node indices are integers: "
            "pass edge_index.long()"
        )
    if edge_index.numel() == 0:
        return
    low, high = (int(bound) for bound in torch.aminmax(edge_index))
    if low < 0 or high >= num_nodes:
        wrong = ((edge_index < 0) | (edge_index >= num_nodes)).nonzero()[0].tolist()
        value = int(edge_index[wrong[0], wrong[1]])
        raise ValueError(
            f"edge_index[{wrong[0]}, {wrong[1]}] = {value} is out of range for {num_nodes} nodes; "
            f"valid nodes are 0 to {num_nodes - 1}; give num_nodes, or x with a row per node"
        )


def check_entries(row: Tensor, col: Tensor, shape: tuple[int, int]) -> None:
    """Raises unless all entries of a sparse matrix lie inside of it."""
    outside = (row < 0) | (row >= shape[0]) | (col < 0) | (col >= shape[1])
    if bool(outside.any()):
        entry = int(outside.nonzero()[0])
        raise ValueError(
            f"entry {entry} is at row {int(row[entry])}, column {int(col[entry])}, outside of "
            f"shape {list(shape)}"
        )


def check_edge_weight(edge_weight: Tensor, num_edges: int, like: Tensor) -> None:
    """Raises unless `edge_weight` is a finite number per edge, of `like`'s dtype and device."""
    check_tensor("edge_weight", edge_weight)
    if edge_weight.dim() != 1 or edge_weight.numel() != num_edges:
        raise ValueError(
            f"edge_weight has shape {list(edge_weight.shape)}; expected [{num_edges}], "
            "one weight per column of edge_index"
        )
    _check_like("edge_weight", edge_weight, "x", like)


def check_edge_attr(edge_attr: Tensor, num_edges: int, channels: int, like: Tensor) -> None:
    """Raises unless `edge_attr` holds finite features `[num_edges, channels]`, like `like`."""
    if records_sizes():
        return
    if edge_attr.shape != (num_edges, channels):
        raise ValueError(
            f"edge_attr has shape {list(edge_attr.shape)}; expected [{num_edges}, {channels}]: one "
            f"row per edge and edge_dim={channels} features"
        )
    _check_like("edge_attr", edge_attr, "x", like)


def _check_like(name: str, tensor: Tensor, other_name: str, other: Tensor) -> None:
    check_same_place(name, tensor, other_name, other)
    check_same_dtype(name, tensor, other_name, other)
    check_finite(name, tensor)


def check_features(x: Tensor, channels: int | None = None, like: Tensor | None = None) -> None:
    """Raises unless `x` holds finite features `[..., N, channels]`, like the weights `like`."""
    check_tensor("x", x)
    if records_sizes():
        return
    if x.dim() < 2:
        raise ValueError(
            f"x has shape {list(x.shape)}; expected [num_nodes, channels]"
            + ("; pass x.unsqueeze(-1) for one feature per node" if x.dim() == 1 else "")
        )
    if channels is not None and x.size(-1) != channels:
        raise ValueError(
            f"x has {x.size(-1)} features per node (shape {list(x.shape)}), "
            f"but in_channels={channels}"
        )
    if not x.is_floating_point():
        raise TypeError(f"x has dtype {x.dtype}; features are floating point: pass x.float()")
    if like is not None:
        check_same_place("x", x, "the weights", like)
        check_same_dtype("x", x, "the weights", like)
    check_finite("x", x.values() if x.layout == torch.sparse_csr else x)


def check_same_place(name: str, tensor: Tensor, other_name: str, other: Tensor) -> None:
    """Raises unless both tensors are on one device."""
    if tensor.device != other.device:
        raise ValueError(
            f"{name} is on {tensor.device}, but {other_name} on {other.device}; "
            f"move one of them with .to({str(other.device)!r})"
        )


def check_same_dtype(name: str, tensor: Tensor, other_name: str, other: Tensor) -> None:
    """Raises unless both tensors are of one dtype (autocast takes care of it where it is on)."""
    if tensor.dtype != other.dtype and not torch.is_autocast_enabled(tensor.device.type):
        raise TypeError(
            f"{name} has dtype {tensor.dtype}, but {other_name} {other.dtype}; "
            f"convert one of them with .to({other.dtype})"
        )


def check_finite(name: str, tensor: Tensor) -> None:
    """Raises where `tensor` has a NaN or an infinity, and says where the first one is."""
    # A finite sum proves that all entries are finite, and costs one pass without a temporary.
    if _values_hidden(tensor) or torch.isfinite(tensor.detach().sum()):
        return
    wrong = (~torch.isfinite(tensor)).nonzero()
    if len(wrong) == 0:  # finite entries whose sum overflows
        return
    place = wrong[0].tolist()
    error = NonFiniteError(
        f"{name}{place} = {float(tensor.detach()[tuple(place)])} is not finite "
        f"({len(wrong)} of {tensor.numel()} entries are NaN or infinite); "
        f"clean {name}, or find the step that made it diverge"
    )
    error.argument = name
    raise error


def check_batch(batch: Tensor, num_nodes: int, like: Tensor, batch_size: int | None = None) -> None:
    """Raises unless `batch` gives each of `num_nodes` nodes the number of its graph."""
    check_tensor("batch", batch)
    if records_sizes():
        return
    if batch.dtype not in INTEGER_TYPES:
        raise TypeError(f"batch has dtype {batch.dtype}; graph numbers are integers")
    if batch.dim() != 1 or batch.numel() != num_nodes:
        raise ValueError(
            f"batch has shape {list(batch.shape)}; expected [{num_nodes}], "
            "one graph number per node"
        )
    check_same_place("batch", batch, "x", like)
    if is_traced(batch):
        return
    if batch.numel() and int(batch.min()) < 0:
        node = int((batch < 0).nonzero()[0])
        raise ValueError(
            f"batch[{node}] = {int(batch[node])} is negative; graph numbers start at 0"
        )
    if batch_size is not None:
        check_count("batch_size", batch_size)
        if batch.numel() and int(batch.max()) >= batch_size:
            raise ValueError(
                f"batch_size={batch_size}, but batch has graph numbers up to {int(batch.max())}; "
                f"pass batch_size={int(batch.max()) + 1} or more, or leave it out"
            )


def check_node_numbers(name: str, nodes: Tensor, num_nodes: int, like: Tensor) -> None:
    """Raises unless `nodes` are numbers `[K]` of some of `num_nodes` nodes, beside `like`."""
    check_tensor(name, nodes)
    if nodes.dim() != 1 or nodes.dtype != torch.int64:
        hint = ": pass mask.nonzero().view(-1)" if nodes.dtype == torch.bool else ""
        raise ValueError(
            f"{name} has shape {list(nodes.shape)} and dtype {nodes.dtype}; expected the numbers "
            f"of nodes, torch.int64 of shape [K]{hint}"
        )
    check_same_place(name, nodes, "x", like)
    wrong = ((nodes < 0) | (nodes >= num_nodes)).nonzero()
    if len(wrong):
        place = int(wrong[0])
        raise ValueError(
            f"{name}[{place}] = {int(nodes[place])} is out of range for {num_nodes} nodes"
        )


def check_tensor(name: str, value: object) -> None:
    """Raises unless `value` is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} is a {type(value).__name__}; pass a torch.Tensor")


def check_positive(name: str, value: float) -> None:
    """Raises unless `value` is a finite number above zero."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < float("inf"):
        raise ValueError(f"{name}={value!r} is not valid; it must be a finite number above 0")


def check_count(name: str, value: int) -> None:
    """Raises unless `value` is an integer of at least one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}={value!r} is not valid; it must be an integer of at least 1")


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raises unless `value` is one of the names in `choices`."""
    names = list(choices)
    if value not in names:
        raise unknown_name(name, value, names)


def check_flag(name: str, value: bool) -> None:
    """Raises unless `value` is `True` or `False`."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}={value!r} is not valid; it must be True or False")


def _values_hidden(tensor: Tensor) -> bool:
    """Whether entries cannot be read: inside `torch.func`'s vmap, or while tracing."""
    return is_traced(tensor) or bool(torch._C._functorch.is_batchedtensor(_innermost(tensor)))


def _innermost(tensor: Tensor) -> Tensor:
    """`tensor` without the wrappers that `grad` and `jvp` put around it."""
    while torch._C._functorch.is_gradtrackingtensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def is_traced(tensor: Tensor) -> bool:
    """Whether what is done with `tensor` is recorded: its entries are then not to be looked at.

    So it is for `torch.compile`, `torch.export` and `torch.jit.trace`, and for meta and fake
    tensors, which have no entries.

    Example:
        >>> is_traced(torch.empty(3)), is_traced(torch.empty(3, device="meta"))
        (False, True)
    """
    return (
        torch.compiler.is_compiling()
        or records_sizes()
        or tensor.is_meta
        or isinstance(tensor, FakeTensor)
    )


def records_sizes() -> bool:
    """Whether `torch.jit.trace` records: the sizes of tensors are then no numbers to compare."""
    return bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]


def is_compiled() -> bool:
    """Whether `torch.compile` records, and not `torch.export`, which wants torch's operations."""
    return torch.compiler.is_compiling() and not torch.compiler.is_exporting()
