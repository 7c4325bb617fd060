"""Open a ledger from its newest summary and what follows it, and write the next summary (ADR 20)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Protocol

from ferry.clock import wall_ms
from ferry.ledger.block_index import unwritten, written
from ferry.ledger.ledger import UNREAD, LedgerView, fold_on, resume_at
from ferry.ledger.summary import (
    Seal,
    block_records,
    parse_summary,
    rolled_up,
    seal_record,
    seals,
    summary_parts,
    superseded_records,
)
from ferry.model import LedgerRecord, Record

FIRST_WINDOW = 4_096
"""Offsets before the end that are searched for a summary at first; each window is twice the one before."""

PORTION = 200_000
"""Offsets that are folded at once where no summary helps: memory does not grow with the ledger."""

BLOCK_BATCH_BYTES = 64 << 10
"""Size of a batch of blocks before compression: what a lookup has to fetch."""


class LedgerLog(Protocol):
    """The ledger's log, as far as summaries need it; `ferry.kafka.produce.ledger_topic.LedgerTopic` is one."""

    async def start(self) -> int:
        """Return the first offset that is kept."""

    async def read(self, start: int | None = None, end: int | None = None) -> tuple[list[LedgerRecord], int]:
        """Return the records of `[start, end)` with their fates, and the offset that was read up to."""

    async def read_gapless(self, start: int, end: int) -> tuple[list[LedgerRecord], int, bool]:
        """Return the records of `[start, end)` with their fates, and the offset that was read up to.

        The third value is whether no offset is missing.
        """

    async def read_untransacted(self, start: int, end: int) -> list[LedgerRecord]:
        """Return the records of `[start, end)` that were written outside transactions."""

    async def read_at(self, offsets: Collection[int]) -> dict[int, LedgerRecord]:
        """Return the records at some offsets."""

    async def append_each(self, records: Sequence[Record], *, batch_bytes: int = ...) -> list[int]:
        """Write records durably, in batches of about this size; return the offset of each."""

    async def tombstones_kept_ms(self) -> int:
        """Return how long compaction keeps a tombstone at least (delete.retention.ms).

        0 when that cannot be learned.
        """


async def open_ledger(log: LedgerLog, end: int) -> LedgerView:
    """Return the view of everything up to `end`: from the newest summary and its tail, or from the whole ledger.

    Raises BadInput for records of a newer format, and what the log raises.
    """
    begin = await log.start()
    if end - begin > FIRST_WINDOW:
        view = await _from_summary(log, begin, end)
        if view is not None:
            return view
    return await _whole(log, end)


async def _from_summary(log: LedgerLog, begin: int, end: int) -> LedgerView | None:
    high, window = end, FIRST_WINDOW
    while high > begin:
        low = max(begin, high - window)
        for seal in seals(await log.read_untransacted(low, high)):
            base = parse_summary(seal, await log.read_untransacted(seal.first, seal.at))
            if base is None:
                continue
            records, at, gapless = await log.read_gapless(resume_at(base), end)
            if gapless or await _keeps_tombstones(log, seal):
                return fold_on(base, records, at)
            return None  # an older summary has a longer tail, and so more that may be gone
        high, window = low, 2 * window
    return None


async def _keeps_tombstones(log: LedgerLog, seal: Seal) -> bool:
    """Return whether the summary is so young that compaction cannot have dropped a tombstone that came after it.

    Otherwise a record of the summary that a tombstone has removed since would count. Half of the time is left for
    clocks that differ.
    """
    age = wall_ms() - seal.at_ms
    return 0 <= age < await log.tombstones_kept_ms() // 2


async def _whole(log: LedgerLog, end: int) -> LedgerView:
    # No portion has a name here: it would stay in memory until the last one is read.
    view = fold_on(UNREAD, *await log.read(None, min(end, await log.start() + PORTION)))
    upto = view.end
    while view.end < end:
        upto += PORTION
        view = rolled_up(view)
        view = fold_on(view, *await log.read(resume_at(view), min(end, upto)))
    return view


async def write_summary(log: LedgerLog, view: LedgerView, generation: int, read_ms: int) -> LedgerView:
    """Write a summary of a view that was read up to a record of the writer's own; return the view in short.

    `read_ms` (epoch milliseconds) is when the view was read. Readers compute the summary's age from it, however late it
    is written.

    Blocks come first, then the parts, and the seal last: a writer that dies leaves nothing that a reader would use.
    Then the summaries before the last one are deleted.
    """
    view = rolled_up(view)
    fresh = unwritten(view.rolled)
    if fresh:
        offsets = await log.append_each(block_records(fresh, generation), batch_bytes=BLOCK_BATCH_BYTES)
        at = {block: offset for (_, block), offset in zip(fresh, offsets, strict=True)}
        view = replace(view, rolled=written(view.rolled, at))
    parts = summary_parts(view, generation)
    first = (await log.append_each(parts))[0]
    await log.append_each([seal_record(parts, view, generation, first, read_ms)])
    gone = superseded_records(view)
    if gone:
        await log.append_each(gone)
    return replace(view, rolled=replace(view.rolled, summarised=view.rolled.upto))
