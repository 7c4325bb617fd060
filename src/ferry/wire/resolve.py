"""Read a log uncommitted and resolve it by its own control batches.

A read_committed reader stops at the last stable offset, which a crashed neighbour's open transaction holds back. It
would miss our own committed receipts after that offset, and copy twice. So the ledger is read to its end. The next
marker of its producer decides every transactional record (KIP-98).
"""

from __future__ import annotations

from collections.abc import Iterable

from ferry.model import Fate, LedgerRecord
from ferry.wire.batch import ABORT_MARKER, COMMIT_MARKER, Batch, marker_type
from ferry.wire.records import open_batch

_FATES = {COMMIT_MARKER: Fate.COMMITTED, ABORT_MARKER: Fate.ABORTED}
"""What a marker makes of the records before it. Others decide nothing."""


class Resolver:
    """Takes batches in offset order; returns the records with their fates when the reading is over."""

    __slots__ = ("_fates", "_open", "_records")

    def __init__(self) -> None:
        self._records: list[tuple[int, bytes, bytes | None, int]] = []
        self._open: dict[int, list[int]] = {}
        self._fates: dict[int, Fate] = {}

    def feed(self, batch: Batch) -> None:
        """Take in the next batch.

        Raises Malformed and TooLong when the batch cannot be opened, and Corrupt for a marker that is none.
        """
        if batch.is_control:
            fate = _FATES.get(marker_type(batch))
            if fate is not None:
                self._fates |= dict.fromkeys(self._open.pop(batch.producer_id, ()), fate)
            return
        for offset, key, value in open_batch(batch):
            if batch.is_transactional:
                self._open.setdefault(batch.producer_id, []).append(len(self._records))
            self._records.append((offset, key, value, batch.producer_id))

    def records(self) -> Iterable[LedgerRecord]:
        """Yield all records in offset order; those without a marker are OPEN."""
        still_open = {index for waiting in self._open.values() for index in waiting}
        for index, (offset, key, value, producer_id) in enumerate(self._records):
            fate = Fate.OPEN if index in still_open else self._fates.get(index, Fate.COMMITTED)
            yield LedgerRecord(offset=offset, key=key, value=value, fate=fate, producer_id=producer_id)
