"""Ledgers as this process knows them: opened from their newest summary, then only continued."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from ferry.clock import wall_ms
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.lane.map_entries import NOWHERE, Rows, block_keys, rows_near, rows_of
from ferry.lane.summaries import open_ledger, write_summary
from ferry.ledger.codec import decode_key, encode
from ferry.ledger.ledger import UNREAD, LedgerView, fold_on, resume_at
from ferry.ledger.map_rows import Match
from ferry.ledger.reading import read_as
from ferry.ledger.receipt_codec import parse_receipt
from ferry.ledger.runs import opened_run, sealed_plan
from ferry.ledger.summary import seals
from ferry.model import LedgerRecord, OpenedRun, Receipt, TopicPartition

FRESH_SECONDS = 300.0
"""Seconds after a reading for which the next reading continues it.

Compaction drops a tombstone after delete.retention.ms, a day by default. A view older than that would keep records that
a tombstone has removed.
"""

PORTION = 20_000
"""Offsets that are read at once where only a few of the records are kept."""


class LedgerCache:
    """Views of one ledger, each continued from the one before."""

    def __init__(self, ledger: LedgerTopic) -> None:
        self._ledger = ledger
        self._view: LedgerView | None = None
        self._opened_at = 0
        """The ledger's end at the last opening: summaries from there on were not tried yet."""
        self._topic_id = ""
        self._read_at = 0.0
        self._read_ms = 0

    async def view(self) -> LedgerView:
        """Return everything up to the ledger's end now.

        Raises BadInput when there is no ledger, because the flow never ran, and for a newer format; Refused and
        Unreachable as `LedgerTopic.find` and `LedgerTopic.read` do.
        """
        await self._ledger.find()
        return await self._view_of_found()

    async def view_if_any(self) -> LedgerView:
        """Return `view`, or an empty one when there is no ledger, because the flow never ran."""
        return await self._view_of_found() if await self._ledger.exists() else UNREAD

    async def _view_of_found(self) -> LedgerView:
        read_ms = wall_ms()
        end = await self._ledger.end(leader_known=True)
        known, topic_id = self._view, self._ledger.topic_id
        if known is None or end < known.end or topic_id != self._topic_id or self._is_old() or self._is_shorter(known):
            view, self._opened_at = await open_ledger(self._ledger, end), end
        elif end == known.end and not known.open:
            view = known  # with what was sorted and parsed for it
        else:
            view = fold_on(known, *await self._ledger.read(resume_at(known), end))
        self._view, self._topic_id, self._read_at, self._read_ms = view, topic_id, time.monotonic(), read_ms
        return view

    @property
    def last(self) -> tuple[LedgerView, int] | None:
        """The last view, without another reading, and when it was read (epoch milliseconds); None before the first."""
        return None if self._view is None else (self._view, self._read_ms)

    def learn(self, view: LedgerView, read_ms: int) -> None:
        """Keep a view that continues the last one (read since `read_ms`, epoch ms), so that it is not read again."""
        age_s = max(0, wall_ms() - read_ms) / 1000
        self._view, self._read_at, self._read_ms = view, time.monotonic() - age_s, read_ms

    async def view_with(self, lane: str, run: str) -> LedgerView:
        """Return `view` with the plan, the outcome and the receipts of a run, also those from before the summary."""
        return await self.with_run(await self.view(), lane, run)

    async def with_run(self, view: LedgerView, lane: str, run: str) -> LedgerView:
        """Return a view of this ledger with the plan, the outcome and the receipts of a run, however old."""
        opened = opened_run(view, lane, run)
        return view if opened is None else await self._with_runs(view, lane, [opened])

    async def view_of(self, run: OpenedRun) -> LedgerView:
        """Return `view` with the plan, the outcome and the receipts of a run that a view has named.

        If the run was opened again since, the records are those of the given opening.
        """
        return await self._with_runs(await self.view(), run.record.lane, [run])

    async def view_named(self, lane: str, run: str, *, most: int | None = None) -> LedgerView:
        """Return the view of `view_with`, and with it the receipts of a run whose record the ledger has deleted.

        The run may have been opened again since under its name, without a sealed plan yet. The receipts are searched
        from the summary backwards, in portions, until a portion has none of them; in `most` records at most (None: in
        all). A run that copied is found whole, because its receipts are close together.
        """
        view = await self.view_with(lane, run)
        opened = opened_run(view, lane, run)
        if opened is not None and sealed_plan(view, lane, run, opened.generation) is not None:
            return view
        name, earlier = encode(run), dict[str, LedgerRecord]()
        high, start = view.rolled.upto, await self._ledger.start()
        low_most = start if most is None else max(start, high - most)
        while high > low_most:
            low = max(low_most, high - PORTION)
            found = await self._portions(low, high, [name])
            upto = high
            while found.open and upto < view.end:  # their markers are after the portion
                upto = min(view.end, upto + PORTION)
                found = await self._portions(low, upto, [name])
            mine = {
                key: record
                for key, record in found.by_key.items()
                if record.offset < high and _is_receipt_of(record, lane, name)
            }
            if earlier and not mine:
                break
            earlier = {**mine, **earlier}
            high = low
        return replace(view, by_key={**earlier, **view.by_key})

    async def view_with_newest(self, lane: str, newest: int) -> LedgerView:
        """Return `view` with the plans, the outcomes and the receipts of the `newest` runs of the lane."""
        view = await self.view()
        return await self._with_runs(view, lane, view.remembered(lane)[-newest:])

    async def _with_runs(self, view: LedgerView, lane: str, runs: list[OpenedRun]) -> LedgerView:
        generations = {run.generation for run in runs}
        if not generations or min(generations) >= view.rolled.upto:
            return view
        # All that the runs wrote is before the record of the second run after them, which had fenced their slots.
        later = [run.generation for run in view.runs if run.record.lane == lane and run.generation > max(generations)]
        upto = min([view.end, *sorted(later)[1:2]])
        names = {run.record.run for run in runs}
        found = await self._portions(min(generations), upto, [encode(name) for name in names])
        earlier = {
            key: record
            for key, record in found.by_key.items()
            if record.offset < view.rolled.upto and _belongs(record, lane, names, view.rolled.left)
        }
        return replace(view, by_key={**earlier, **view.by_key})

    async def _portions(self, start: int, end: int, names: list[bytes]) -> LedgerView:
        """Return the records between two offsets that contain one of the names.

        Memory does not grow with what other runs wrote meanwhile.
        """
        view = replace(UNREAD, end=start, parsed={})
        while view.end < end:
            records, upto = await self._ledger.read(resume_at(view), min(end, view.end + PORTION))
            view = fold_on(view, [record for record in records if _says(record, names)], upto)
        return view

    async def rows(self, view: LedgerView, match: Match, begins: Mapping[TopicPartition, int] = NOWHERE) -> Rows:
        """Return the receipts of the matching chains in short, however old; `view` is of this ledger.

        Blocks that are wholly before `begins` (target offsets by partition) are left out.
        """
        return await rows_of(self._ledger, view, match, begins)

    async def receipts_with(self, view: LedgerView, match: Match, offset: int) -> list[Receipt]:
        """Return the receipts of the matching chains that cover a source offset, even if they no longer hold for it."""
        rows = await rows_near(self._ledger, view, match, offset)
        offsets = [row.at for ones in rows.values() for row in ones if row.start <= offset < row.end]
        found = await self._ledger.read_at(offsets) if offsets else {}
        return [read_as(record, parse_receipt) for _, record in sorted(found.items()) if record.value is not None]

    async def block_keys(self, view: LedgerView, match: Match) -> list[bytes]:
        """Return the keys of the matching chains' blocks."""
        return await block_keys(self._ledger, view, match)

    async def summarise(self, view: LedgerView, generation: int, read_ms: int) -> None:
        """Write a summary of a view that was read (at `read_ms`, epoch ms) up to a record of the caller's own."""
        self.learn(await write_summary(self._ledger, view, generation, read_ms), read_ms)

    def _is_old(self) -> bool:
        return time.monotonic() > self._read_at + FRESH_SECONDS

    def _is_shorter(self, known: LedgerView) -> bool:
        """Return whether a summary that came since the opening has in short what a view holds as records.

        Another process, or other connections, wrote the summary. Without it a view that is only continued would hold
        every receipt since its opening. Each question about offsets would then skip all of them.
        """
        written = (known.by_key[key] for key in known.keys("summary"))
        return any(
            seal.upto > known.rolled.upto for seal in seals(one for one in written if one.offset >= self._opened_at)
        )


def _says(record: LedgerRecord, names: Collection[bytes]) -> bool:
    """Return whether one of the names is in a record, or the record is a tombstone.

    A tombstone may be for a record that contained the name.
    """
    return record.value is None or any(name in record.key or name in record.value for name in names)


def _is_receipt_of(record: LedgerRecord, lane: str, name: bytes) -> bool:
    """Return whether a record is a receipt that contains a run's name."""
    return decode_key(record.key)[:2] == ["receipt", lane] and name in (record.value or b"")


def _belongs(record: LedgerRecord, lane: str, runs: Collection[str], left: Mapping[str, int]) -> bool:
    """Return whether a record is a receipt, or a plan or an outcome of these runs that the ledger still has.

    `left` is that of LedgerDigest. Compaction is late: the log may still hold a plan that a later run deleted.
    """
    key = decode_key(record.key)
    return key[:2] == ["receipt", lane] or (
        key[:2] in (["plan", lane], ["outcome", lane], ["unit", lane])
        and key[2] in runs
        and left.get(record.key.decode()) == record.offset
    )


class LedgerCaches:
    """The ledgers of a flow and of its neighbours, by cluster and source alias."""

    def __init__(self, caches: Mapping[tuple[Cluster, str], LedgerCache] = MappingProxyType({})) -> None:
        """`caches` are those that open connections have already."""
        self._caches = dict(caches)

    def of(self, cluster: Cluster, source_alias: str) -> LedgerCache:
        """Return the ledger on `cluster` of the flows that come from `source_alias`."""
        return self._caches.setdefault((cluster, source_alias), LedgerCache(LedgerTopic(cluster, source_alias)))
