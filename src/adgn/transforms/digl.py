"""DIGL: edges where diffusion goes, by personalised PageRank or the heat kernel."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.sparse
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from scipy.special import gammainc

from adgn.transforms.base import EdgeGraph, Transform, register_transform

Matrix = NDArray[np.float64]
_EXACT_NODES = 5000  # up to here the dense matrix takes at most 200 MB
_BLOCK_ENTRIES = 2**22  # of the columns that are worked on at a time
_USUAL_K = 64


@register_transform
class DIGL(Transform):
    r"""Graph diffusion convolution ([Gasteiger et al.](https://arxiv.org/abs/1911.05485)).

    With $\hat{\mathbf{A}} = \hat{\mathbf{D}}^{-1/2} (\mathbf{A} + \mathbf{I})
    \hat{\mathbf{D}}^{-1/2}$, $\hat{\mathbf{D}}$ its row sums, new edges $i \to j$ have the weights
    $S_{ij}$ of

    $$
    \mathbf{S} = \alpha (\mathbf{I} - (1 - \alpha) \hat{\mathbf{A}})^{-1}
    \qquad\text{or}\qquad
    \mathbf{S} = \exp(-t (\mathbf{I} - \hat{\mathbf{A}})).
    $$

    Of each column the $k$ largest entries (all of one that has no more), or all entries of at least
    `threshold`, stay, divided by their sum: the weights that a node hears are 1 in sum. With
    `undirected` the result is $(\mathbf{S} + \mathbf{S}^\top) / 2$ of that, and what node $j$
    hears is $(1 + \sum_i S_{ji}) / 2$ in sum, which in general is not 1.

    In both cases the method that follows takes the weights as they are, in place of the operator
    that it would make, with no second normalisation and no further self loops; `normalize=True`
    leaves the weights to its normalisation.

    Up to 5,000 nodes the matrix is solved for, dense. Above, columns are worked out in blocks by
    the power series of $\hat{\mathbf{A}}$, whose truncation changes no entry by more than
    `tolerance`, so that no $n \times n$ matrix is needed.

    Example:
        >>> from adgn.transforms import EdgeGraph
        >>> path = EdgeGraph(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
        >>> result = DIGL(alpha=0.2, k=3)(path)
        >>> result.edge_index.tolist()
        [[0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2, 0, 1, 2, 0, 1, 2]]
        >>> [round(weight, 2) for weight in result.edge_weight[result.edge_index[1] == 0].tolist()]
        [0.52, 0.31, 0.17]
    """

    name = "digl"
    title = "DIGL (graph diffusion)"
    paper = "https://arxiv.org/abs/1911.05485"
    is_slow = True

    kernel: Literal["ppr", "heat"] = Field("ppr", description="personalised PageRank or heat")
    alpha: float = Field(
        0.15, gt=0, le=1, description="ppr: the probability of going back to the start"
    )
    t: float = Field(5.0, ge=0, le=500, description="heat: for how long it diffuses")
    k: int | None = Field(
        None, ge=1, description="entries kept per column at most; 64 where no threshold is given"
    )
    threshold: float | None = Field(
        None, gt=0, description="entries of at least this are kept, instead of `k`"
    )
    undirected: bool = Field(False, description="whether the result is made symmetric")
    normalize: bool = Field(
        False, description="whether the method that follows normalises the weights once more"
    )
    method: Literal["auto", "exact", "series"] = Field(
        "auto", description="`exact`: dense; `series`: blocks of columns; `auto`: by size"
    )
    tolerance: float = Field(
        1e-6, gt=0, lt=1, description="series: the error of an entry, at the most"
    )

    @model_validator(mode="before")
    @classmethod
    def _one_rule_of_what_is_kept(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        k, threshold = values.get("k"), values.get("threshold")
        if k is not None and threshold is not None:
            raise ValueError(
                f"transform digl: k={k!r} and threshold={threshold!r} are two rules of which "
                "entries are kept; give one of them"
            )
        return {**values, "k": _USUAL_K} if k is None and threshold is None else values

    def check(self, graph: EdgeGraph) -> None:
        """Raises where weights are negative."""
        weight = graph.edge_weight
        if weight is not None and bool((weight < 0).any()):
            edge = int((weight < 0).nonzero()[0])
            raise ValueError(
                f"transform digl: edge_weight[{edge}] = {float(weight[edge]):.6g} is negative, and "
                "diffusion needs weights from 0 on"
            )

    def expected_edges(self, nodes: int, edges: int) -> int:
        """`k` per node; for a threshold it is not known."""
        if self.k is None:
            return edges
        return nodes * min(self.k, nodes) * (2 if self.undirected else 1)

    def apply(self, graph: EdgeGraph) -> EdgeGraph:
        """The diffused graph, with weights in single precision."""
        rows, columns, values, empty = [], [], [], 0
        for first, block in self._columns(graph):
            row, column, value = self._kept(block)
            total = np.bincount(column, weights=value, minlength=block.shape[1])
            empty += int((total == 0).sum())
            rows.append(row)
            columns.append(column + first)
            values.append(value / total[column])
        entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        matrix = scipy.sparse.coo_matrix(entries, (graph.num_nodes,) * 2).tocsr()
        if self.undirected:
            matrix = (matrix + matrix.T) / 2
        coo = matrix.tocoo()
        device = graph.edge_index.device
        edges = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64)).to(device)
        return replace(
            graph,
            edge_index=edges,
            edge_weight=torch.from_numpy(coo.data.astype(np.float32)).to(device),
            normalized=not self.normalize,
            report={
                **graph.report,
                "digl.edges": float(edges.size(1)),
                "digl.empty_columns": float(empty),
            },
        )

    def describe(self, report: Mapping[str, float]) -> str:
        """How many edges there are now."""
        empty = report["empty_columns"]
        told = f", {empty:,.0f} nodes hear nobody" if empty else ""
        return f"{report['edges']:,.0f} weighted edges by diffusion{told}"

    def _columns(self, graph: EdgeGraph) -> Iterator[tuple[int, Matrix]]:
        """Blocks of columns of S, `[n, block]` each, and the number of their first."""
        operator, degree = diffusion_operator(graph)
        nodes = graph.num_nodes
        exact = nodes <= _EXACT_NODES if self.method == "auto" else self.method == "exact"
        if exact:
            yield 0, self._dense(operator.toarray())
            return
        coefficients = self.coefficients(float(np.sqrt(degree.max() / degree.min())))
        width = max(1, _BLOCK_ENTRIES // nodes)
        for first in range(0, nodes, width):
            last = min(first + width, nodes)
            term = np.zeros((nodes, last - first))
            term[np.arange(first, last), np.arange(last - first)] = 1.0
            total = coefficients[0] * term
            for coefficient in coefficients[1:]:
                term = operator @ term
                total += coefficient * term
            yield first, total

    def _dense(self, operator: Matrix) -> Matrix:
        identity = np.eye(len(operator))
        if self.kernel == "heat":
            heat: Matrix = scipy.linalg.expm(self.t * (operator - identity))
            return heat
        inverse = np.linalg.inv(identity - (1 - self.alpha) * operator)
        return np.asarray(self.alpha * inverse, dtype=np.float64)

    def coefficients(self, bound: float = 1.0) -> list[float]:
        r"""Those of $\hat{\mathbf{A}}^0, \hat{\mathbf{A}}^1, \dots$, as many as `tolerance` needs.

        All of them are 1 in sum, and those left out at most `tolerance / bound`, where no entry of
        a power is larger than `bound`. As $\hat{\mathbf{A}}^k = \hat{\mathbf{D}}^{1/2}
        \mathbf{P}^k \hat{\mathbf{D}}^{-1/2}$ with a stochastic $\mathbf{P}$, the root of the
        largest quotient of two degrees is such a bound.

        Example:
            >>> [round(value, 3) for value in DIGL(alpha=0.5, tolerance=0.1).coefficients()]
            [0.5, 0.25, 0.125, 0.062]
        """
        ppr = self.kernel == "ppr"
        value = self.alpha if ppr else float(np.exp(-self.t))
        found = [value]
        while True:
            power = len(found)
            rest = (1 - self.alpha) ** power if ppr else float(gammainc(power, self.t))
            if rest * bound <= self.tolerance:
                return found
            value = value * ((1 - self.alpha) if ppr else self.t / power)
            found.append(value)

    def _kept(self, block: Matrix) -> tuple[NDArray[np.int64], NDArray[np.int64], Matrix]:
        """Row, column and value of the entries that stay."""
        if self.threshold is not None:
            row, column = np.nonzero(block >= self.threshold)
        else:
            assert self.k is not None
            count = min(self.k, len(block))
            largest = np.argpartition(-block, count - 1, axis=0)[:count]
            column = np.broadcast_to(np.arange(block.shape[1]), largest.shape).ravel()
            row = largest.ravel()
            there = block[row, column] > 0  # fewer than k may be reached
            row, column = row[there], column[there]
        return row, column, block[row, column]


def diffusion_operator(graph: EdgeGraph) -> tuple[scipy.sparse.csr_matrix, Matrix]:
    r"""$\hat{\mathbf{A}}$ of a graph, in double precision, and the row sums of $\mathbf{A} +
    \mathbf{I}$. Repeated edges add up, and self loops of the graph count besides those of
    $\mathbf{I}$.

    Example:
        >>> pair = EdgeGraph(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> diffusion_operator(pair)[0].toarray().round(2).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    nodes = graph.num_nodes
    source, target = graph.edge_index.cpu().numpy()
    weight = np.ones(source.size)
    if graph.edge_weight is not None:
        weight = graph.edge_weight.detach().cpu().double().numpy()
    matrix = scipy.sparse.coo_matrix((weight, (source, target)), (nodes, nodes)).tocsr()
    matrix = matrix + scipy.sparse.identity(nodes, format="csr")
    degree = np.asarray(matrix.sum(axis=1)).ravel()
    scale = scipy.sparse.diags(degree**-0.5)
    return (scale @ matrix @ scale).tocsr(), degree
