"""What a transform is: a graph in, a graph out; all of them by name."""

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias, TypeVar

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor

from adgn._util.registry import Registry
from adgn._util.suggestions import did_you_mean, nearest
from adgn.graph.checks import check_count, check_edge_index, check_edge_weight, check_tensor


@dataclass(frozen=True, eq=False)
class EdgeGraph:
    """The edges of a graph, before and after a transform.

    Attributes:
        edge_index: `[2, E]`, sources and targets.
        num_nodes: The number of nodes.
        edge_weight: `[E]`, finite; `None`: all edges count alike.
        normalized: Whether the weights are an operator already, which the method that follows
            applies as it is.
        fully_adjacent: Whether the last layer of the method that follows is on the complete graph.
        kept: `[num_nodes]`, the numbers that the nodes had before, ascending; `None`: all are
            there.
        report: What the transforms did, as numbers: `"sdrf.added"` and so on.

    Example:
        >>> EdgeGraph(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        EdgeGraph(3 nodes, 2 edges)
    """

    edge_index: Tensor
    num_nodes: int
    edge_weight: Tensor | None = None
    normalized: bool = False
    fully_adjacent: bool = False
    kept: Tensor | None = None
    report: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_tensor("edge_index", self.edge_index)
        check_count("num_nodes", self.num_nodes)
        check_edge_index(self.edge_index, self.num_nodes)
        if self.edge_weight is not None:
            check_edge_weight(self.edge_weight, self.num_edges, self.edge_weight)
            if self.edge_weight.device != self.edge_index.device:
                raise ValueError(
                    f"edge_weight is on {self.edge_weight.device}, but edge_index on "
                    f"{self.edge_index.device}; move one of them"
                )

    @property
    def num_edges(self) -> int:
        """The number of columns of `edge_index`."""
        return self.edge_index.size(1)

    @property
    def is_symmetric(self) -> bool:
        """Whether each edge is there in both directions, with one weight."""
        count, ends = self.num_nodes, self.edge_index.long().cpu()
        weight = torch.ones(ends.size(1)) if self.edge_weight is None else self.edge_weight.cpu()
        there, back = ends[0] * count + ends[1], ends[1] * count + ends[0]
        keys, place = torch.unique(torch.cat([there, back]), return_inverse=True)
        total = weight.new_zeros(2, keys.numel())
        total[0].index_add_(0, place[: len(there)], weight)
        total[1].index_add_(0, place[len(there) :], weight)
        return bool(torch.equal(total[0], total[1]))

    def __repr__(self) -> str:
        parts = [f"{self.num_nodes:,} nodes", f"{self.num_edges:,} edges"]
        parts += ["weighted"] if self.edge_weight is not None else []
        parts += [f"{key}={value:g}" for key, value in self.report.items()]
        return f"EdgeGraph({', '.join(parts)})"


class Transform(BaseModel, ABC):
    """A change of a graph that is made once, before any method sees it.

    A subclass has its settings as fields, a `name`, and `apply`. Settings are checked and never
    converted.

    Example:
        >>> from adgn.transforms import EdgeGraph, Reverse
        >>> Reverse()(EdgeGraph(torch.tensor([[0, 1], [1, 2]]), 3)).edge_index.tolist()
        [[1, 2], [0, 1]]
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    name: ClassVar[str]
    title: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    # Raised when the result for the same graph and settings changes: files of before do not serve.
    version: ClassVar[int] = 1
    keeps_nodes: ClassVar[bool] = True  # whether all nodes are there afterwards
    uses_weights: ClassVar[bool] = True  # False: a graph with weights is refused
    is_slow: ClassVar[bool] = False  # whether the result is worth a file
    # Whether many graphs side by side are transformed as each of them would be alone.
    separable: ClassVar[bool] = False

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise ValueError(_explained(type(self), error)) from None

    def __call__(self, graph: EdgeGraph) -> EdgeGraph:
        """The transformed graph; raises `ValueError` for one that it cannot be applied to."""
        if not isinstance(graph, EdgeGraph):
            raise TypeError(
                f"graph is a {type(graph).__name__}; {self.name} takes an EdgeGraph(edge_index, "
                f"num_nodes), and of PyG data adgn.data.transformed(data, {self.name!r})"
            )
        self.check(graph)
        return self.apply(graph)

    def check(self, graph: EdgeGraph) -> None:
        """Raises for a graph that the transform has no meaning for."""
        if graph.edge_weight is not None and not self.uses_weights:
            raise ValueError(
                f"{self.name} was given a graph with edge weights, which it has no meaning for; "
                "leave the weights out, or put it before the transform that made them"
            )

    @abstractmethod
    def apply(self, graph: EdgeGraph) -> EdgeGraph:
        """The transformed graph, for one that was checked."""

    def expected_edges(self, nodes: int, edges: int) -> int:
        """About how many edges there are afterwards, known before: memory is estimated by it."""
        return edges

    def describe(self, report: Mapping[str, float]) -> str:
        """What it did, in a line, from its part of a report; empty where there is nothing."""
        return ""

    def settings(self) -> dict[str, Any]:
        """The name and all settings, as a configuration holds them."""
        return {"name": self.name, **self.model_dump(mode="json")}


TransformLike: TypeAlias = (
    str | Mapping[str, Any] | Transform | Sequence[str | Mapping[str, Any] | Transform] | None
)
_TRANSFORMS: Registry[type[Transform]] = Registry("transform", "transform")
Kind = TypeVar("Kind", bound=type[Transform])


def register_transform(kind: Kind) -> Kind:
    """Decorator: makes a subclass of `Transform` known by its `name`.

    Example:
        >>> from adgn.transforms import Transform, register_transform, unregister_transform
        >>> @register_transform
        ... class WithoutEdges(Transform):
        ...     '''Leaves all edges out.'''
        ...     name = "without_edges"
        ...     def apply(self, graph):
        ...         return replace(graph, edge_index=graph.edge_index[:, :0], edge_weight=None)
        >>> "without_edges" in available_transforms()
        True
        >>> unregister_transform("without_edges")
    """
    _TRANSFORMS.add(kind.name, kind)
    return kind


def unregister_transform(name: str) -> None:
    """Forgets a transform, so that its name is free."""
    _TRANSFORMS.remove(name)


def available_transforms() -> list[str]:
    """The names of all transforms, sorted.

    Example:
        >>> available_transforms()
        ['digl', 'fa', 'largest_component', 'reverse', 'sdrf', 'undirected']
    """
    return sorted(_TRANSFORMS)


def find_transform(name: str) -> type[Transform]:
    """The class of a transform by name."""
    return _TRANSFORMS.find(name)


def resolve_transforms(given: TransformLike) -> tuple[Transform, ...]:
    """Transforms from names, settings or transforms; applied in this order.

    Args:
        given: A name, `"sdrf"`; a name with settings, `"sdrf:iterations=20,seed=3"`; several, one
            after the other, `"undirected | digl:k=32"`; settings, `{"name": "sdrf", "seed": 3}`; a
            transform; or a list of these. `None` and `"none"`: no transform.

    Example:
        >>> resolve_transforms("undirected | digl:alpha=0.1,k=32")
        (Undirected(), DIGL(kernel='ppr', alpha=0.1, t=5.0, k=32, threshold=None, undirected=False,
        normalize=False, method='auto', tolerance=1e-06))
        >>> resolve_transforms("slrf")
        Traceback (most recent call last):
        ValueError: transform='slrf' is not known. Did you mean 'sdrf'? Choose one of: digl, ...
    """
    if given is None:
        return ()
    if isinstance(given, Transform):
        return (given,)
    if isinstance(given, str):
        if given.strip().lower() in ("", "none"):
            return ()
        return tuple(_from_text(part) for part in given.split("|"))
    if isinstance(given, Mapping):
        return (_from_settings(given),)
    if isinstance(given, Sequence):
        return tuple(transform for part in given for transform in resolve_transforms(part))
    raise TypeError(
        f"transform is a {type(given).__name__}; give a name, settings, a Transform or a list"
    )


def _from_text(text: str) -> Transform:
    name, colon, rest = text.partition(":")
    settings: dict[str, Any] = {"name": name.strip()}
    for part in rest.split(",") if colon else ():
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise ValueError(
                f"transform={text.strip()!r}: {part.strip()!r} is not key=value; write, for "
                "example, sdrf:iterations=20,seed=3"
            )
        if key.strip() in settings:
            raise ValueError(
                f"transform={text.strip()!r}: {key.strip()!r} is given more than once; give it once"
            )
        settings[key.strip()] = _value(value.strip())
    return _from_settings(settings)


def _value(text: str) -> Any:
    """A number, a truth value or a name."""
    known = {"true": True, "false": False}
    if text.lower() in known:
        return known[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _from_settings(settings: Mapping[str, Any]) -> Transform:
    if "name" not in settings:
        raise ValueError(
            f"transform={dict(settings)!r} has no name; give one of: "
            + ", ".join(available_transforms())
        )
    kind = find_transform(settings["name"])
    given = {
        key: None if value == "none" else value  # TOML has no null
        for key, value in settings.items()
        if key != "name"
    }
    return kind(**given)


def _explained(kind: type[Transform], error: ValidationError) -> str:
    problems = []
    for problem in error.errors():
        option = str(problem["loc"][0]) if problem["loc"] else ""
        if problem["type"] == "extra_forbidden":
            hint = did_you_mean(nearest(option, kind.model_fields))
            problems.append(f"transform {kind.name} has no setting {option!r}.{hint}")
        elif option:
            reason = problem["msg"][:1].lower() + problem["msg"][1:]
            problems.append(
                f"{option}={problem['input']!r} is not valid for transform {kind.name}: {reason}."
            )
        else:
            problems.append(problem["msg"].removeprefix("Value error, ") + ".")
    takes = ", ".join(
        f"{name}={field.get_default(call_default_factory=True)!r}"
        for name, field in kind.model_fields.items()
    )
    return f"{' '.join(problems)} {kind.name} takes {takes or 'no settings'}."


def apply_each(transform: Transform, graph: EdgeGraph, node_ptr: Tensor | None = None) -> EdgeGraph:
    """A transform of a graph, or of each of many graphs side by side.

    Args:
        transform: What to apply.
        graph: The graph, or all graphs as one.
        node_ptr: `[G + 1]`; where the nodes of each of many graphs begin. `None`: there is one.

    Example:
        >>> from adgn.transforms import LargestComponent, Undirected
        >>> pair = EdgeGraph(torch.tensor([[0, 2], [1, 3]]), 4)  # 0 → 1 and 2 → 3
        >>> apply_each(Undirected(), pair, torch.tensor([0, 2, 4])).num_edges
        4
        >>> apply_each(LargestComponent(), pair, torch.tensor([0, 2, 4]))
        Traceback (most recent call last):
        ValueError: largest_component leaves nodes out, ...
    """
    if node_ptr is None or transform.separable:
        return transform(graph)
    if not transform.keeps_nodes:
        raise ValueError(
            f"{transform.name} leaves nodes out, which is not done to each of many graphs: apply "
            "it to each graph before they are put together"
        )
    transform.check(graph)
    owner = torch.bucketize(graph.edge_index[0].contiguous(), node_ptr[1:], right=True)
    order = torch.argsort(owner, stable=True)
    counts = torch.bincount(owner, minlength=node_ptr.numel() - 1).tolist()
    parts, report = [], dict[str, float]()
    first = node_ptr.tolist()
    for number, chosen in enumerate(torch.split(order, counts)):
        nodes = first[number + 1] - first[number]
        if nodes == 0:
            continue
        weight = None if graph.edge_weight is None else graph.edge_weight[chosen]
        edges = graph.edge_index[:, chosen] - first[number]
        part = transform(replace(graph, edge_index=edges, num_nodes=nodes, edge_weight=weight))
        parts.append(replace(part, edge_index=part.edge_index + first[number], num_nodes=first[-1]))
        for key, value in part.report.items():
            known = report.get(key)
            merge = min if "minimum" in key else sum
            report[key] = value if known is None else merge((known, value))
    if not parts:
        return graph
    weights = [part.edge_weight for part in parts if part.edge_weight is not None]
    return replace(
        parts[0],
        edge_index=torch.cat([part.edge_index for part in parts], dim=1),
        edge_weight=torch.cat(weights) if weights else None,
        report={**graph.report, **report},
    )
