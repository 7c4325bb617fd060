"""The ledger's log in memory and runs that write it: what a reader knows is compared with all that was ever written."""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest

from ferry.clock import wall_ms
from ferry.features.groups.acts.saved_offsets import with_saved
from ferry.features.groups.rules.codec import (
    Saved,
    Snapshot,
    dropped_snapshots,
    saved_groups,
    saved_record,
    snapshot_record,
    snapshots,
)
from ferry.lane import summaries
from ferry.lane.map_entries import rows_of
from ferry.lane.pruning import sweep, unswept_tombstones
from ferry.lane.summaries import open_ledger, write_summary
from ferry.ledger import block_index
from ferry.ledger.codec import decode_key, deleted_record, gap_record
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.map_block import MapEntry, ReceiptChain
from ferry.ledger.plan_codec import plan_records
from ferry.ledger.pruning import Copy, LogStarts, candidates, given_up, pruned, pruned_record
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.receipts import receipts
from ferry.ledger.run_codec import Outcome, fenced_record, outcome_record, run_record
from ferry.ledger.runs import expired, newest_run, slots_to_fence
from ferry.model import Fate, Gap, LedgerRecord, Record, RefusalKind, Resolution, Segment, TopicPartition
from tests.pure.decide.values import DELETED, LANE, PLAN, RECEIPT, place, refusal, run_of

T = TypeVar("T")
NO_TRANSACTION = -1


def now(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    raise AssertionError("it waits")


class Died(Exception):
    """The writer of a summary is no more."""


NOTHING = Record(key=b"", value=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record of a transaction, or (`commits` is not None) the marker that ends one."""

    record: Record = NOTHING
    transaction: int = NO_TRANSACTION
    commits: bool | None = None


@dataclass(slots=True)
class ModelLog:
    """The ledger's log in memory. Compaction leaves holes; `entries` are what was ever written."""

    entries: list[Entry] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)
    appends_left: int | None = None
    kept_ms: int = 0
    reads: list[tuple[int, int]] = field(default_factory=list)

    @property
    def end(self) -> int:
        return len(self.entries)

    def write(self, *records: Record, transaction: int = NO_TRANSACTION) -> int:
        self.entries += [Entry(record=record, transaction=transaction) for record in records]
        return self.end - 1

    def finish(self, transaction: int, *, commits: bool) -> None:
        self.entries.append(Entry(transaction=transaction, commits=commits))

    def seen(self, begin: int, end: int, taken: Collection[int]) -> list[LedgerRecord]:
        """What a reader of `[begin, end)` sees: the fates that the markers in it decide."""
        found = []
        markers: dict[int, bool] = {}
        for at in reversed(range(begin, end)):
            entry = self.entries[at]
            if entry.commits is not None:
                markers[entry.transaction] = entry.commits
            elif at not in taken:
                marker = markers.get(entry.transaction, True if entry.transaction == NO_TRANSACTION else None)
                fate = Fate.OPEN if marker is None else Fate.COMMITTED if marker else Fate.ABORTED
                record = entry.record
                found.append(LedgerRecord(offset=at, key=record.key, value=record.value, fate=fate, producer_id=1))
        return found[::-1]

    def compact(self, upto: int, *, drop_tombstones: bool) -> None:
        """What the cleaner may take of the log before `upto`, which holds no undecided record."""
        fates = {record.offset: record.fate for record in self.seen(0, self.end, ())}
        upto = min([upto, *(at for at, fate in fates.items() if fate is Fate.OPEN)])
        last = {self.entries[at].record.key: at for at, fate in fates.items() if fate is Fate.COMMITTED and at < upto}
        for at, fate in fates.items():
            record = self.entries[at].record
            if at < upto and (
                fate is Fate.ABORTED or last[record.key] != at or (record.value is None and drop_tombstones)
            ):
                self.taken.add(at)

    def whole(self) -> LedgerView:
        """All that was ever written, folded."""
        return fold(self.seen(0, self.end, ()), self.end)

    # As LedgerLog

    async def start(self) -> int:
        return 0

    async def read(self, start: int | None = None, end: int | None = None) -> tuple[list[LedgerRecord], int]:
        begin, upto = start or 0, self.end if end is None else end
        self.reads.append((begin, upto))
        return self.seen(begin, upto, self.taken), upto

    async def read_gapless(self, start: int, end: int) -> tuple[list[LedgerRecord], int, bool]:
        records, at = await self.read(start, end)
        return records, at, self.taken.isdisjoint(range(start, end))

    async def read_untransacted(self, start: int, end: int) -> list[LedgerRecord]:
        return [
            record
            for record in self.seen(start, end, self.taken)
            if self.entries[record.offset].transaction == NO_TRANSACTION
        ]

    async def read_at(self, offsets: Collection[int]) -> dict[int, LedgerRecord]:
        return {record.offset: record for record in self.seen(0, self.end, self.taken) if record.offset in set(offsets)}

    async def append_each(self, records: Sequence[Record], *, batch_bytes: int = 0) -> list[int]:
        if self.appends_left is not None:
            if self.appends_left == 0:
                raise Died
            self.appends_left -= 1
        first = self.end
        self.write(*records)
        return list(range(first, self.end))

    async def tombstones_kept_ms(self) -> int:
        return self.kept_ms


@dataclass(slots=True)
class History:
    """Writes what runs write, and remembers where each partition stands."""

    log: ModelLog = field(default_factory=ModelLog)
    stands: dict[TopicPartition, tuple[int, int, int]] = field(default_factory=dict)
    undecided: dict[int, list[tuple[TopicPartition, tuple[int, int, int]]]] = field(default_factory=dict)
    runs: int = 0
    transactions: int = 0
    generation: int = 0
    begins: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The log starts of each partition at the source and at the target."""
    swept: set[int] = field(default_factory=set)
    """Where pruning wrote."""

    def run(self) -> None:
        """Opens a run, seals a plan, and lets go of all but the newest two that did something, and two that did not."""
        self.runs += 1
        record = run_of(f"run-{self.runs}", slots=1 + self.runs % 3)
        self.generation = self.log.write(run_record(record))
        self.log.write(fenced_record(LANE, record.run, self.generation, 3, [record.flow]))
        refusals = (refusal(),) if self.runs % 2 else ()  # every other run has nothing to do
        plan = replace(PLAN, run=record.run, generation=self.generation, refusals=refusals)
        self.log.write(*plan_records(plan))
        self.log.write(outcome_record(LANE, record.run, Outcome()))
        self.log.write(*expired(self.log.whole(), LANE, 2))

    def chunk(self, numbers: Sequence[int], sizes: Sequence[int]) -> int:
        """A transaction with a receipt for each partition, undecided as yet; its number."""
        self.transactions += 1
        busy = {target for ones in self.undecided.values() for target, _ in ones}
        mine: list[tuple[TopicPartition, tuple[int, int, int]]] = []
        for number, size in zip(numbers, sizes, strict=True):
            target = place("a.orders", number)
            if target in busy:
                continue
            start, target_next, since = self.stands.get(target, (10 * number, 0, -1))
            segment = Segment(source_start=start + size % 2, target_start=target_next + 1, count=size)
            receipt = replace(
                RECEIPT,
                run=f"run-{self.runs}",
                generation=self.generation,
                source=place("orders", number),
                target=target,
                start=start,
                end=segment.source_end,
                target_next=segment.target_end,
                segments=(segment,) if size % 5 else (),
                since=since,
            )
            self.log.write(*receipt_records(receipt), transaction=self.transactions)
            mine.append((target, (receipt.end, segment.target_end, since)))
        self.undecided[self.transactions] = mine
        return self.transactions

    def finish(self, transaction: int, *, commits: bool) -> None:
        """The marker."""
        self.log.finish(transaction, commits=commits)
        ends = self.undecided.pop(transaction)
        if commits:
            self.stands.update(ends)

    def finish_all(self) -> None:
        """Whoever opens a run has fenced all writers."""
        for transaction in list(self.undecided):
            self.finish(transaction, commits=False)

    def go_back(self, number: int) -> None:
        """A guard lets the lane begin a partition again, behind what the target holds."""
        target = place("a.orders", number)
        if target not in self.stands:
            return
        start, target_next, since = self.stands[target]
        gap = Gap(
            source=place("orders", number),
            start=start,
            end=0,
            why=RefusalKind.TOPIC_RECREATED,
            run=f"run-{self.runs}",
            at_ms=1,
            how=Resolution.RESTART,
            generation=self.generation,
            since=since,
            void_from=0,
        )
        self.log.write(gap_record(LANE, gap))
        self.stands[target] = (0, target_next, self.generation)
        self.begins[number] = 0, self.begins.get(number, (0, 0))[1]

    def delete(self) -> None:
        """The copy is deleted after its source; all that is known of it is forgotten."""
        opened = now(open_ledger(self.log, self.log.end))
        self.log.write(*now(unswept_tombstones(self.log, opened, LANE, {"a.orders"})))
        view = self.log.whole()
        kinds, topics = ("receipt", "last", "gap", "pruned"), ("a.orders", "orders")
        records = [deleted_record(LANE, DELETED)]
        records += [
            Record(key=record.key, value=None)
            for kind in kinds
            for key, record in view.of_kind(kind)
            if key[2] in topics
        ]
        # Also what pruning has taken away before: `unpruned` would have it again.
        keys = {one.offset: decode_key(one.key) for one in self.log.seen(0, self.log.end, ())}
        self.swept |= {offset for offset, key in keys.items() if key[0] in (*kinds, "map") and key[2] in topics}
        self.log.write(*records)
        self.stands.clear()
        self.begins.clear()

    def save(self, name: str, groups: Sequence[str], offset: int) -> None:
        """Offsets of groups are kept under a name, again where it is there already."""
        saved = {place("a.orders", 0): Saved(None, offset)}
        self.log.write(*(saved_record(LANE, name, group, saved) for group in groups))
        self.log.write(snapshot_record(LANE, Snapshot(name=name, at_ms=self.log.end, groups=len(groups))))

    def drop(self, name: str) -> None:
        """A snapshot goes, as somebody finds it who opens the ledger from a summary."""
        self.log.write(*dropped_snapshots(now(open_ledger(self.log, self.log.end)), LANE, [name]))

    def summarise(self, appends: int | None = None) -> None:
        """Writes a summary; dies after some appends."""
        self.log.appends_left = appends
        try:
            read_ms = wall_ms()
            now(write_summary(self.log, now(open_ledger(self.log, self.log.end)), self.generation, read_ms))
        except Died:
            pass
        finally:
            self.log.appends_left = None

    def lose(self, number: int, source: float, target: float) -> None:
        """Retention takes a share of what is left of a partition's logs."""
        end, target_next, _ = self.stands.get(place("a.orders", number), (0, 0, -1))
        here, there = self.begins.get(number, (0, 0))
        # Up to the marker behind the last record, which is the last that a log can lose.
        here, there = max(here, int(end * source)), max(there, int((target_next + 1) * target))
        self.begins[number] = here, there

    def prune(self, most: int, appends: int | None = None) -> None:
        """Takes away what was given up before, and gives up what has gone since; dies after some appends."""
        before = self.log.end
        self.log.appends_left = appends
        starts = LogStarts(
            source_cluster_id=RECEIPT.source_cluster_id,
            source_ids={"orders": RECEIPT.source_topic_id},
            target_ids={"a.orders": RECEIPT.target_topic_id},
            source={place("orders", number): here for number, (here, _) in self.begins.items()},
            target={place("a.orders", number): there for number, (_, there) in self.begins.items()},
        )
        try:
            view = now(open_ledger(self.log, self.log.end))
            now(sweep(self.log, view, LANE, most, self.log.append_each))
            found = given_up(view, candidates(view, LANE), starts, run=f"run-{self.runs}", at_ms=1)
            now(self.log.append_each([pruned_record(one) for one in found]))
        except Died:
            pass
        finally:
            self.log.appends_left = None
        self.swept |= set(range(before, self.log.end))

    def unpruned(self) -> LedgerView:
        """All that was ever written, without what pruning did."""
        records = [one for one in self.log.seen(0, self.log.end, ()) if one.offset not in self.swept]
        return fold(records, self.log.end)


_SHORT = ("receipt", "plan", "outcome", "offsets", "summary", "map")


def small_windows(patch: pytest.MonkeyPatch) -> None:
    """Windows and blocks of a few records, so that short histories have many."""
    patch.setattr(summaries, "FIRST_WINDOW", 4)
    patch.setattr(summaries, "PORTION", 16)
    patch.setattr(block_index, "BLOCK_ROWS", 3)


def kinds(view: LedgerView, *wanted: str) -> set[str]:
    return {key for key in [*view.by_key, *view.rolled.left] if key.startswith(tuple(f'["{kind}"' for kind in wanted))}


def rows_in(view: LedgerView) -> dict[ReceiptChain, list[MapEntry]]:
    """The rows of a view that has all its receipts, but for those that are given up."""
    found: dict[ReceiptChain, list[MapEntry]] = {}
    gone = {copy: one.end for copy, one in pruned(view).items()}
    keyed = [record for _, record in view.of_kind("receipt")]
    for record, receipt in zip(keyed, receipts(view), strict=True):
        of = ReceiptChain.of(receipt)
        if receipt.end > gone.get(Copy.of(of), -1):
            found.setdefault(of, []).append(MapEntry.of(receipt, record.offset))
    return found


def assert_same(log: ModelLog, opened: LedgerView, whole: LedgerView) -> None:
    """The two views say the same."""
    told = {key: (one.offset, one.value) for key, one in opened.by_key.items() if not key.startswith('["receipt"')}
    for key in [key for key in told if key in kinds(opened, *_SHORT)]:
        del told[key]
    expected = {key: (one.offset, one.value) for key, one in whole.by_key.items() if key not in kinds(whole, *_SHORT)}
    assert told == expected
    assert list(told) == list(expected), "in the order of the last records"
    assert opened.open == whole.open
    assert kinds(opened, "plan", "outcome", "offsets") == kinds(whole, "plan", "outcome", "offsets")
    assert newest_run(opened, LANE) == newest_run(whole, LANE)
    assert slots_to_fence(opened, LANE) == slots_to_fence(whole, LANE)
    assert {one.key for one in expired(opened, LANE, 1)} == {one.key for one in expired(whole, LANE, 1)}
    for name in [*snapshots(whole, LANE), "never"]:
        saved = now(with_saved(log, opened, LANE, name))
        assert saved_groups(saved, LANE, name) == saved_groups(whole, LANE, name)
        gone = dropped_snapshots(whole, LANE, [name])
        for view in (opened, saved):
            assert {one.key for one in dropped_snapshots(view, LANE, [name])} == {one.key for one in gone}
            assert len(dropped_snapshots(view, LANE, [name])) == len(gone)
    found = {of: rows for of, rows in now(rows_of(log, opened, lambda _: True)).items() if rows}
    assert found == rows_in(whole)
