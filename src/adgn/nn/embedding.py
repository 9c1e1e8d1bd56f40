"""The encoder of nodes whose features are integers, such as keys and values."""

from collections.abc import Sequence

from torch import Tensor, nn

from adgn.graph.checks import INTEGER_TYPES, check_count


class IntegerEmbedding(nn.Module):
    r"""Adds the embeddings of all integers of a node.

    $$
    \mathbf{x}_u^0 = \sum_k \mathbf{E}_k[f_{uk}]
    $$

    Args:
        sizes: For each column of the features, how many values it has: 0 to `size - 1`.
        channels: The size of an embedding.

    Shapes:
        - **input:** integers `[N, len(sizes)]`
        - **output:** `[N, channels]`

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
