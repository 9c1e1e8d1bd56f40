"""The shell that every model shares: encoder → propagation → readout."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool

from adgn.graph import Adjacency, NeededNodes, sparse_features
from adgn.graph.adjacency import SPARSE_LAYOUTS
from adgn.graph.checks import (
    INTEGER_TYPES,
    check_batch,
    check_choice,
    check_count,
    check_features,
    check_flag,
    check_node_numbers,
    check_tensor,
    is_traced,
)
from adgn.graph.needed import feature_rows
from adgn.nn.registry import ModelOptions, ModelSpec, check_ridge, unused_edge_features

Level = Literal["node", "graph"]
LEVELS: tuple[Level, ...] = ("node", "graph")
ENCODERS = ("linear", "linear_no_bias", "embedding", "none")
FIRST_DROPOUTS = ("states", "features")
READOUTS = ("linear", "linear_no_bias", "mlp", "ridge", "none")
_POOLS = (global_add_pool, global_max_pool, global_mean_pool)


class IntegerEmbedding(nn.Module):
    r"""Adds the embeddings of all integers of a node.

    $$
    \mathbf{x}_u^0 = \sum_k \mathbf{E}_k[f_{uk}]
    $$

    Args:
        sizes: For each column of the features, how many values it has: 0 to `size - 1`.
        channels: The size of an embedding.

    Shapes: integers `[N, len(sizes)]` → `[N, channels]`.

    Example:
        >>> import torch
        >>> IntegerEmbedding([5, 3], 16)(torch.tensor([[4, 0], [1, 2]])).shape
        torch.Size([2, 16])
    """

    def __init__(self, sizes: Sequence[int], channels: int) -> None:
        super().__init__()
        if not sizes:
            raise ValueError("sizes is empty; give the number of values of each column")
        for size in sizes:
            check_count("sizes", size)
        self.tables = nn.ModuleList(nn.Embedding(size, channels) for size in sizes)

    def forward(self, x: Tensor) -> Tensor:
        """The first states of all nodes."""
        if x.dim() != 2 or x.size(1) != len(self.tables) or x.dtype not in INTEGER_TYPES:
            raise ValueError(
                f"x has shape {list(x.shape)} and dtype {x.dtype}; the embedding needs integers "
                f"[num_nodes, {len(self.tables)}]"
            )
        states: Tensor = self.tables[0](x[:, 0])
        for column, table in enumerate(self.tables[1:], start=1):
            states = states + table(x[:, column])
        return states

    def reset_parameters(self) -> None:
        """Draws new embeddings."""
        for table in self.tables:
            table.reset_parameters()  # type: ignore[operator]


class GraphNetwork(nn.Module):
    r"""Encoder, propagation and readout: what all models have in common.

    $$
    \mathbf{X}^0 = \mathrm{encoder}(\mathbf{F}), \qquad
    \mathbf{X}^L = \mathrm{propagation}(\mathbf{X}^0, \mathcal{G}), \qquad
    \hat{\mathbf{y}} = \mathrm{readout}(\mathbf{X}^L)
    $$

    At graph level the readout reads the sum, the maximum and the mean over a graph's nodes, next
    to each other. With `fully_adjacent` the readout of a node reads, next to its state, the mean of
    all states of its graph, which is a last layer on the complete graph with a self term:

    $$
    \hat{\mathbf{Y}} = \mathbf{X}^L \mathbf{W}_{\mathrm{self}}^\top + \tfrac{1}{n} \mathbf{1}
        \mathbf{1}^\top \mathbf{X}^L \mathbf{W}^\top + \mathbf{1} \mathbf{b}^\top
    $$

    Args:
        in_channels: Features per node; with `encoder="embedding"` a list of how many values each
            has, from 0.
        hidden_channels: The size $d$ of a node's state.
        out_channels: Outputs per node or graph.
        propagation: A module called as `propagation(x, edge_index, edge_weight)` (and
            `edge_attr` where edge features are given) that maps states `[N, d]` to states
            `[N, d]`. An attribute `edge_dim = None` says that it reads no edge features,
            `reads_batch = True` that it is also called with `batch` and `batch_size`,
            `encoded_channels` that the encoder gives it another size than `d`, and `out_channels`
            that its last states have another size. A method `needed(like,
            edge_index, edge_weight, nodes)` that returns `NeededNodes`, or `None`, says that it
            can be called with those in place of `edge_index`.
        level: `"node"`: one output per node; `"graph"`: one per graph.
        encoder: `"linear"` (no activation); `"linear_no_bias"`; `"embedding"`: the sum of an
            embedding of each of the node's integers; or `"none"`: the features are the states.
        readout: `"linear"`; `"linear_no_bias"`; `"mlp"`: the paper's two linear layers with
            LeakyReLU after each; `"ridge"`: linear, and solved in closed form by
            [`Trainer`][adgn.training.Trainer], while encoder and propagation stay as they are; or
            `"none"`: the (pooled) states are the outputs.
        dropout: The share of entries dropped, while training, of the first states, and of the last
            where a readout reads them.
        first_dropout: What the first dropout acts on: `"states"`, what the encoder gives, or
            `"features"`, what it is given; of sparse features the stored entries are dropped.
        train_recurrent: Whether the weights of the propagation are trained; with `False` they stay
            as initialised. `readout="ridge"` needs `False`.
        fully_adjacent: Whether the readout of nodes is on the complete graph. It takes $O(nd)$
            time and memory.

    Shapes: features `[N, in_channels]`, dense or sparse CSR; a graph; edge weights `[E]`, graph
    numbers `[N]`, edge features `[E, F]` (all three optional) → `[N, out_channels]` or `[graphs,
    out_channels]`.

    Example:
        >>> import torch
        >>> class Neighbours(torch.nn.Module):  # each node takes the sum of its neighbours' states
        ...     def forward(self, x, edge_index, edge_weight=None):
        ...         return torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        >>> network = GraphNetwork(4, 8, 2, Neighbours(), level="graph")
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])  # two graphs of two nodes
        >>> network(torch.randn(4, 4), edge_index, batch=torch.tensor([0, 0, 1, 1])).shape
        torch.Size([2, 2])
    """

    spec: ClassVar[ModelSpec]  # of a class that is registered

    def __init__(
        self,
        in_channels: int | Sequence[int],
        hidden_channels: int,
        out_channels: int,
        propagation: nn.Module,
        *,
        level: Level = "node",
        encoder: str | None = "linear",
        readout: str = "linear",
        dropout: float = 0.0,
        first_dropout: str = "states",
        train_recurrent: bool = True,
        fully_adjacent: bool = False,
    ) -> None:
        super().__init__()
        values = None if isinstance(in_channels, int) else tuple(in_channels)
        in_channels = in_channels if isinstance(in_channels, int) else len(in_channels)
        check_count("in_channels", in_channels)
        check_count("hidden_channels", hidden_channels)
        check_count("out_channels", out_channels)
        check_choice("level", level, LEVELS)
        encoder = "none" if encoder is None else encoder
        check_choice("encoder", encoder, ENCODERS)
        check_choice("readout", readout, READOUTS)
        check_choice("first_dropout", first_dropout, FIRST_DROPOUTS)
        if not isinstance(dropout, int | float) or not 0 <= dropout < 1:
            raise ValueError(f"dropout={dropout!r} is not valid; it must be in [0, 1)")
        check_ridge(readout, train_recurrent, dropout)
        check_flag("fully_adjacent", fully_adjacent)
        if fully_adjacent and level == "graph":
            raise ValueError(
                "fully_adjacent=True has no meaning at level='graph', whose readout reads the mean "
                "of all nodes already; leave it out"
            )
        if (encoder == "embedding") != (values is not None):
            raise ValueError(
                f"encoder={encoder!r} does not fit in_channels={values or in_channels}: an "
                "'embedding' needs a list of how many values each integer feature has, all other "
                "encoders the number of features"
            )
        if first_dropout == "features" and values is not None:
            raise ValueError(
                "first_dropout='features' does not fit encoder='embedding', whose integers cannot "
                "be dropped; use first_dropout='states'"
            )
        encoded: int = getattr(propagation, "encoded_channels", hidden_channels)
        if encoder == "none" and in_channels != encoded:
            raise ValueError(
                f"encoder='none' needs hidden_channels={hidden_channels} to equal "
                f"in_channels={in_channels}; use encoder='linear' or the same size"
            )
        self.in_channels = in_channels
        self.hidden_channels = hidden_channels
        self.out_channels = out_channels
        self.level = level
        self.fully_adjacent = fully_adjacent
        self.configuration: dict[str, Any] = {}  # the arguments of build_model, where it was used
        self.dropout = nn.Dropout(dropout)
        self.drops_features = first_dropout == "features"
        self.encoder: nn.Module | None = None
        if values is not None:
            self.encoder = IntegerEmbedding(values, encoded)
        elif encoder != "none":
            self.encoder = nn.Linear(in_channels, encoded, bias=encoder == "linear")
        self.propagation = propagation
        self.state_channels: int = getattr(propagation, "out_channels", hidden_channels)
        read = self.state_channels * (len(_POOLS) if level == "graph" else 1 + fully_adjacent)
        if readout == "none" and out_channels != read:
            raise ValueError(f"readout='none' gives {read} outputs; set out_channels={read}")
        self.readout = _build_readout(readout, read, out_channels)
        self.solves_readout = readout == "ridge"
        if not train_recurrent:
            self.propagation.requires_grad_(False)
        if self.solves_readout and self.encoder is not None:
            self.encoder.requires_grad_(False)

    def forward(
        self,
        x: Tensor,
        edge_index: Adjacency,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        batch_size: int | None = None,
        edge_attr: Tensor | None = None,
        nodes: Tensor | None = None,
    ) -> Tensor:
        """The outputs of all nodes or graphs.

        Args:
            x: Features, `[N, in_channels]`.
            edge_index: The graph, or several side by side as in a PyG batch.
            edge_weight: `[E]`.
            batch: `[N]`; the graph that each node belongs to. Needed at graph level.
            batch_size: The number of graphs; by default the largest number in `batch` plus one.
            edge_attr: Edge features `[E, F]`, for a propagation that uses them.
            nodes: `[K]`; the numbers of the nodes whose outputs are wanted, `[K, out_channels]`.
                The result is that of all nodes, of which these rows are taken. Where these nodes
                depend on far fewer states than there are, as with few layers on a large graph or
                at the root of a tree, only those are computed (`adgn.graph.needed_nodes`): by
                A-DGN with `sum` or `gcn` and Euler's steps, without `first_hops`, and by GCN, GAT,
                GraphSAGE, GIN and GCNII without dropout and batch normalisation. What is needed is
                worked out once per graph and `nodes`, so pass the same tensors again.
        """
        needed = None if nodes is None else self._needed(x, edge_index, edge_weight, nodes)
        if needed is not None and edge_attr is None:
            last: Tensor = self.propagation(self.encode(x, needed.nodes), needed)
            return self.read(last.index_select(-2, needed.read))
        states = self.states(
            x, edge_index, edge_weight, batch, batch_size=batch_size, edge_attr=edge_attr
        )
        if not isinstance(self.readout, nn.Identity):  # else they are the outputs
            states = self.dropout(states)
        if nodes is None:
            return self.read(states, batch, batch_size)
        if not is_traced(states):
            check_node_numbers("nodes", nodes, states.size(-2), states)
        if self.fully_adjacent:
            return self.read(states, batch, batch_size).index_select(-2, nodes)
        return self.read(states.index_select(-2, nodes))

    def _needed(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None, nodes: Tensor
    ) -> NeededNodes | None:
        """What has to be computed for the outputs of `nodes`; `None` for everything."""
        if self.level == "graph":
            raise ValueError("nodes was given at level='graph', where graphs have outputs")
        weight = next(self.parameters(), None)
        if is_traced(x) or weight is None:
            return None
        check_tensor("x", x)
        check_tensor("nodes", nodes)
        find = getattr(self.propagation, "needed", None)
        drops = self.training and self.dropout.p > 0
        if find is None or drops or self.fully_adjacent or x.dim() != 2:
            return None
        needed: NeededNodes | None = find(
            weight.new_empty(x.size(0), 0), edge_index, edge_weight, nodes
        )
        return needed

    def states(
        self,
        x: Tensor,
        edge_index: Adjacency,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        batch_size: int | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        """The last states of all nodes, `[N, state_channels]`; arguments as in `forward`."""
        self._check_batch_given(batch)  # before the work of all layers
        if edge_attr is not None and getattr(self.propagation, "edge_dim", edge_attr) is None:
            raise unused_edge_features(type(self).__name__)
        states = self.encode(x)
        if not self.drops_features:
            states = self.dropout(states)
        extra: dict[str, Any] = {} if edge_attr is None else {"edge_attr": edge_attr}
        if getattr(self.propagation, "reads_batch", False):
            extra |= {"batch": batch, "batch_size": batch_size}
        last: Tensor = self.propagation(states, edge_index, edge_weight, **extra)
        return last

    def encode(self, x: Tensor, nodes: Tensor | None = None) -> Tensor:
        """The first states, `[N, hidden_channels]`; sparse features are never made dense.

        Their size is the propagation's `encoded_channels` where it has that attribute. With `nodes`
        those of some nodes, in the order of their numbers `[K]`. With `first_dropout="features"`
        entries of `x` are dropped while training.
        """
        check_tensor("x", x)
        encoder = self.encoder
        if nodes is not None and x.layout == torch.strided:
            x = x.index_select(0, nodes)
        if encoder is not None and not isinstance(encoder, nn.Linear):
            states: Tensor = encoder(x)
            return states
        weight = next(self.parameters(), None)
        if x.layout in SPARSE_LAYOUTS:
            if x.layout != torch.sparse_csr:
                raise ValueError(
                    f"x has layout {x.layout}; sparse features are CSR: pass x.to_sparse_csr()"
                )
            if encoder is None:
                raise ValueError("sparse x needs an encoder; use encoder='linear' or a dense x")
            if x.requires_grad:
                raise ValueError(
                    "the sparse x requires a gradient, which would be lost; pass x.to_dense(), or "
                    "x.detach() if the gradient is not needed"
                )
            check_features(x, self.in_channels, like=weight)
            features = sparse_features(x) if nodes is None else feature_rows(x, nodes)
            if self.drops_features and self.training and self.dropout.p > 0:
                features = features.with_values(self.dropout(features.value))
            product = features @ encoder.weight.t()
            return product if encoder.bias is None else product + encoder.bias
        check_features(x, self.in_channels, like=weight)
        if self.drops_features:
            x = self.dropout(x)
        if encoder is None:
            return x
        encoded: Tensor = encoder(x)
        return encoded

    def read(
        self, states: Tensor, batch: Tensor | None = None, batch_size: int | None = None
    ) -> Tensor:
        """The outputs from the last states, `[N, state_channels]`; arguments as in `forward`."""
        output: Tensor = self.readout(self.pool(states, batch, batch_size))
        return output

    def pool(
        self, states: Tensor, batch: Tensor | None = None, batch_size: int | None = None
    ) -> Tensor:
        """What the readout reads: the states, at graph level `[graphs, 3 * state_channels]`.

        With `fully_adjacent` `[N, 2 * state_channels]`: each state and the mean of its graph's.
        """
        self._check_batch_given(batch)
        if batch is not None and (self.level == "graph" or self.fully_adjacent):
            check_batch(batch, states.size(-2), states, batch_size)
            batch = batch.long()
        if batch is not None and self.level == "graph":
            return torch.cat([pool(states, batch, batch_size) for pool in _POOLS], dim=-1)
        if not self.fully_adjacent:
            return states
        if batch is None:
            mean = states.mean(dim=-2, keepdim=True).expand_as(states)
        else:
            mean = global_mean_pool(states, batch, batch_size).index_select(-2, batch)
        return torch.cat([states, mean], dim=-1)

    def _check_batch_given(self, batch: Tensor | None) -> None:
        if self.level == "graph" and batch is None:
            raise ValueError(
                "batch=None, but level='graph' pools the nodes of each graph: pass the graph "
                "number of each node, torch.zeros(num_nodes, dtype=torch.long) for a single graph"
            )

    def reset_parameters(self) -> None:
        """Draws new weights for all parts."""
        for part in self.modules():
            if part is not self and hasattr(part, "reset_parameters"):
                part.reset_parameters()  # type: ignore[operator]

    def undecayed_parameters(self) -> list[nn.Parameter]:
        """The parameters without weight decay: those that a part names in its `undecayed`."""
        parts = ((part, getattr(part, "undecayed", ())) for part in self.modules())
        return [getattr(part, name) for part, names in parts for name in names]

    def parameter_counts(self) -> dict[str, int]:
        """Trainable numbers per part: `encoder`, `propagation`, `readout` and `total`."""
        parts = {name: getattr(self, name) for name in ("encoder", "propagation", "readout")}
        counts = {
            name: sum(p.numel() for p in part.parameters() if p.requires_grad) if part else 0
            for name, part in parts.items()
        }
        return {**counts, "total": sum(counts.values())}

    def extra_repr(self) -> str:
        """Sizes and level, for `repr`."""
        sizes = f"{self.in_channels} → {self.hidden_channels} → {self.out_channels}"
        return f"{sizes}, level={self.level!r}"


class Model(GraphNetwork, ABC):
    """A network whose propagation is built from the options registered for it.

    Its arguments are those of [`build_model`][adgn.nn.build_model], without the name.
    """

    def __init__(
        self,
        in_channels: int | Sequence[int],
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        *,
        level: Level = "node",
        **options: Any,
    ) -> None:
        check_count("hidden_channels", hidden_channels)
        check_count("num_layers", num_layers)
        if not hasattr(self, "spec"):
            name = type(self).__name__
            raise TypeError(f"{name} is not registered; put @register_model(name) before the class")
        parsed = self.spec.parse(options)
        read = parsed.readout != "none" or level == "graph" or parsed.fully_adjacent
        outputs = None if read else out_channels
        propagation = self.propagation_for(hidden_channels, num_layers, parsed, outputs)
        common = {name: getattr(parsed, name) for name in ModelOptions.model_fields}
        super().__init__(
            in_channels, hidden_channels, out_channels, propagation, level=level, **common
        )

    def propagation_for(
        self, channels: int, num_layers: int, options: Any, outputs: int | None
    ) -> nn.Module:
        """What `build_propagation` builds, unless it is overridden.

        `outputs` is the size of the last states where they are the outputs, and `None` where a
        readout makes those of them.
        """
        return self.build_propagation(channels, num_layers, options)

    @staticmethod
    @abstractmethod
    def build_propagation(channels: int, num_layers: int, options: Any) -> nn.Module:
        """The module between encoder and readout."""


def _build_readout(name: str, in_channels: int, out_channels: int) -> nn.Module:
    if name == "none":
        return nn.Identity()
    if name in ("linear", "linear_no_bias", "ridge"):
        return nn.Linear(in_channels, out_channels, bias=name != "linear_no_bias")
    middle = max(1, in_channels // 2)
    layers: OrderedDict[str, Any] = OrderedDict(
        hidden=nn.Linear(in_channels, middle),
        hidden_act=nn.LeakyReLU(),
        output=nn.Linear(middle, out_channels),
        output_act=nn.LeakyReLU(),
    )
    return nn.Sequential(layers)
