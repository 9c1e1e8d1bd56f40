"""What determines a property-prediction data set."""

from collections.abc import Iterator
from dataclasses import dataclass

from adgn._util.suggestions import unknown_name
from adgn.data.checks import check_integer

SPLITS = ("train", "val", "test")
SMALLEST_GRAPH = 4
PAPER_NOISE = 0.1


@dataclass(frozen=True)
class PropertySettings:
    """What determines the data set.

    Args:
        seed: where the counter of graph seeds starts; the paper's is 1234.
        min_nodes: nodes of the graphs in block 0; block b holds graphs of `min_nodes + b` nodes.
        train: (blocks, graphs per block) of the train split; `val` and `test` alike.
        edge_noise: the chance that an edge is removed, while as many others are added; the paper's
            is 0.1. Graphs in which this leaves a node without edges are drawn again, which limits
            the size of graphs: for long lines, stars and trees (100 nodes and more) choose 0.

    Example:
        >>> PropertySettings().num_graphs("train")
        5120
        >>> PropertySettings(min_nodes=2)
        Traceback (most recent call last):
        ValueError: min_nodes=2 is too small; give an integer of at least 4: the graph types need
        them
    """

    seed: int = 1234
    min_nodes: int = 25
    train: tuple[int, int] = (10, 512)
    val: tuple[int, int] = (5, 128)
    test: tuple[int, int] = (5, 256)
    edge_noise: float = PAPER_NOISE

    def __post_init__(self) -> None:
        check_integer("min_nodes", self.min_nodes, SMALLEST_GRAPH, why="the graph types need them")
        for split in SPLITS:
            pair = getattr(self, split)
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise ValueError(
                    f"{split}={pair!r} is not a pair; give (blocks, graphs per block), such as "
                    "(5, 128)"
                )
            check_integer(f"blocks of {split}", pair[0], 1)
            check_integer(f"graphs per block of {split}", pair[1], 1)
        noise = self.edge_noise
        if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise < 1:
            raise ValueError(
                f"edge_noise={noise!r} is not valid; give a probability: a number of at least 0 "
                "and less than 1"
            )
        check_integer("seed", self.seed, 0, at_most=2**31 - 1)

    def shape(self, split: str) -> tuple[int, int]:
        """(blocks, graphs per block) of a split."""
        if split not in SPLITS:
            raise unknown_name("split", split, SPLITS)
        blocks, graphs = getattr(self, split)
        return blocks, graphs

    def num_graphs(self, split: str) -> int:
        """How many graphs a split has."""
        blocks, graphs = self.shape(split)
        return blocks * graphs

    def blocks(self) -> Iterator[tuple[str, int, int]]:
        """(split, nodes per graph, number of graphs) in the order of generation."""
        for split in SPLITS:
            blocks, graphs = self.shape(split)
            for block in range(blocks):
                yield split, self.min_nodes + block, graphs
