"""Rows that ranks exchange, by `torch.distributed`."""

import torch.distributed as dist
from torch import Tensor

from adgn.distributed.ranks import ProcessRanks
from adgn.graph.partitioned import Received


class RowExchange:
    """Sends rows to all ranks at once and gets theirs, while this rank goes on.

    Args:
        ranks: Who takes part.

    Attributes:
        received: Bytes that have come in so far.
    """

    def __init__(self, ranks: ProcessRanks) -> None:
        self.ranks = ranks
        self.received = 0

    def send(
        self, rows: Tensor, out: list[int], into: list[int], place: Tensor | None = None
    ) -> Received:
        """See `adgn.graph.partitioned.Exchange`."""
        rows = rows.contiguous()
        coming = rows.new_empty(sum(into), rows.size(1)) if place is None else place
        with self.ranks.exchanging("an exchange of states"):
            work = dist.all_to_all_single(coming, rows, into, out, async_op=True)

        def received() -> Tensor:
            with self.ranks.exchanging("an exchange of states"):
                work.wait()
            self.received += coming.numel() * coming.element_size()
            return coming

        # The rows must live until they are sent.
        received.rows = rows  # type: ignore[attr-defined]
        return received
