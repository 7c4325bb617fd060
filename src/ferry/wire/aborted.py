"""Leave out the records of aborted transactions, as a read_committed consumer does.

Source: KIP-98 and Kafka's `CompletedFetch.fetchNextRecord`. A fetch answer names the aborted transactions that touch
its range. A producer's records are aborted from that first offset up to its next abort marker.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from ferry.wire.batch import ABORT_MARKER, MAGIC, Batch, marker_type


class AbortedTransactions:
    """The aborted transactions of one partition, while its batches are read in offset order."""

    __slots__ = ("_ahead", "_known", "_open")

    def __init__(self) -> None:
        self._ahead: list[tuple[int, int]] = []  # heap of (first offset, producer id)
        self._known: set[tuple[int, int]] = set()
        self._open: set[int] = set()

    def learn(self, transactions: Iterable[tuple[int, int]]) -> None:
        """Take in a fetch answer's `(producer id, first offset)` pairs; repeats are harmless."""
        for producer_id, first_offset in transactions:
            entry = (first_offset, producer_id)
            if entry not in self._known:
                self._known.add(entry)
                heapq.heappush(self._ahead, entry)

    def hides(self, batch: Batch) -> bool:
        """Return whether this next data batch belongs to an aborted transaction; call it once per batch, in order.

        Raises Corrupt for a marker that is none.
        """
        while self._ahead and self._ahead[0][0] < batch.next_offset:
            self._open.add(heapq.heappop(self._ahead)[1])
        if batch.is_control:
            if batch.producer_id in self._open and marker_type(batch) == ABORT_MARKER:
                self._open.discard(batch.producer_id)
            return False
        return batch.is_transactional and batch.producer_id in self._open

    def leaves_out(self, batch: Batch) -> bool:
        """Return whether nothing of this next batch is copied: it is aborted, a marker, or empty.

        Call it once per batch, in order. Raises Corrupt for a marker that is none.
        """
        return self.hides(batch) or batch.is_control or (batch.magic == MAGIC and not batch.record_count)
