"""A ledger opened from a summary and its tail says what the whole ledger says, whatever happened in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferry.decide import rolled, summary
from ferry.decide.deletes import deleted_record
from ferry.decide.ledger import LedgerView, fold, gaps, newest_run, outlived, receipts, slots_to_fence
from ferry.decide.ledger_codec import (
    fenced_record,
    gap_record,
    outcome_record,
    pause_record,
    receipt_records,
    resume_record,
    run_record,
)
from ferry.decide.map_block import Chain, MapRow
from ferry.decide.offset_map import OffsetMap
from ferry.decide.plan_codec import plan_records
from ferry.decide.summary import is_due
from ferry.model import (
    Fate,
    Gap,
    LedgerRecord,
    Lifted,
    Pause,
    Record,
    RefusalKind,
    Segment,
    TopicPartition,
)
from ferry.run import summaries
from ferry.run.offset_maps import load_maps
from ferry.run.rows import rows_of
from ferry.run.summaries import open_ledger, write_summary
from tests.decide.values import LANE, PLAN, RECEIPT, place, run_of

T = TypeVar("T")
NO_TRANSACTION = -1


def now(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
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

    def run(self) -> None:
        """Opens a run, seals a plan, and forgets all but the newest two."""
        self.runs += 1
        record = run_of(f"run-{self.runs}", slots=1 + self.runs % 3)
        self.generation = self.log.write(run_record(record))
        self.log.write(fenced_record(LANE, record.run, self.generation, 3))
        plan = replace(PLAN, run=record.run, generation=self.generation)
        self.log.write(*plan_records(plan))
        self.log.write(outcome_record(LANE, record.run, [], []))
        self.log.write(*outlived(self.log.whole(), LANE, 2))

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
            mine.append((target, (receipt.end, receipt.target_next, since)))
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
            how=Lifted.RESTART,
            generation=self.generation,
            since=since,
            void_from=0,
        )
        self.log.write(gap_record(LANE, gap))
        self.stands[target] = (0, target_next, self.generation)

    def delete(self) -> None:
        """The copy is deleted after its source; all that is known of it is forgotten."""
        view = self.log.whole()
        records = [deleted_record(LANE, "a.orders", {"topic": "orders"})]
        records += [
            Record(key=record.key, value=None)
            for kind in ("receipt", "last", "gap")
            for key, record in view.of_kind(kind)
            if key[2] in ("a.orders", "orders")
        ]
        self.log.write(*records)
        self.stands.clear()

    def summarise(self, appends: int | None = None) -> None:
        """Writes a summary; dies after some appends."""
        self.log.appends_left = appends
        try:
            now(write_summary(self.log, now(open_ledger(self.log, self.log.end)), self.generation))
        except Died:
            pass
        finally:
            self.log.appends_left = None


Step = Callable[[History], object]
numbers = st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True)
sizes = st.lists(st.integers(1, 9), min_size=3, max_size=3)


def chunk(ones: Sequence[int], of: Sequence[int], commits: bool | None) -> Step:
    def step(history: History) -> None:
        transaction = history.chunk(ones, of[: len(ones)])
        if commits is not None:
            history.finish(transaction, commits=commits)

    return step


def new_run(history: History) -> None:
    history.finish_all()
    history.run()


def ending(commits: bool) -> Step:
    def step(history: History) -> None:
        for transaction in list(history.undecided)[:1]:
            history.finish(transaction, commits=commits)

    return step


def compaction(back: int, drop: bool) -> Step:
    return lambda history: history.log.compact(max(0, history.log.end - back), drop_tombstones=drop)


def deletion(history: History) -> None:
    history.finish_all()
    history.delete()


def going_back(number: int) -> Step:
    def step(history: History) -> None:
        new_run(history)
        history.go_back(number)

    return step


PAUSE = Pause(topic="orders", who="ann", why="upgrade", since_ms=1)
steps = st.one_of(
    st.builds(chunk, numbers, sizes, st.sampled_from([True, True, True, False, None])),
    st.just(new_run),
    st.builds(ending, st.booleans()),
    st.sampled_from([0, 1, 2, 3, None, None, None]).map(lambda appends: lambda history: history.summarise(appends)),
    st.builds(compaction, st.integers(0, 30), st.booleans()),
    st.just(lambda history: history.log.write(pause_record(PAUSE))),
    st.just(lambda history: history.log.write(resume_record("orders"))),
    st.just(deletion),
    st.builds(going_back, st.integers(0, 2)),
)
histories = st.integers(5, 30).flatmap(lambda size: st.lists(steps, min_size=size, max_size=size))
_SHORT = ("receipt", "plan", "outcome", "summary", "map")


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """Windows and blocks of a few records, so that short histories have many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summaries, "FIRST_WINDOW", 4)
        patch.setattr(summaries, "PORTION", 16)
        patch.setattr(rolled, "BLOCK_ROWS", 3)
        patch.setattr("ferry.run.offset_maps._WHOLE_BLOCKS", 1)
        yield


def kinds(view: LedgerView, *wanted: str) -> set[str]:
    return {key for key in [*view.by_key, *view.rolled.left] if key.startswith(tuple(f'["{kind}"' for kind in wanted))}


def rows_in(view: LedgerView) -> dict[Chain, list[MapRow]]:
    """The rows of a view that has all its receipts."""
    found: dict[Chain, list[MapRow]] = {}
    keyed = [record for _, record in view.of_kind("receipt")]
    for record, receipt in zip(keyed, receipts(view), strict=True):
        found.setdefault(Chain.of(receipt), []).append(MapRow.of(receipt, record.offset))
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
    assert kinds(opened, "plan", "outcome") == kinds(whole, "plan", "outcome")
    assert newest_run(opened, LANE) == newest_run(whole, LANE)
    assert slots_to_fence(opened, LANE) == slots_to_fence(whole, LANE)
    assert {one.key for one in outlived(opened, LANE, 1)} == {one.key for one in outlived(whole, LANE, 1)}
    found = {of: rows for of, rows in now(rows_of(log, opened, lambda _: True)).items() if rows}
    assert found == rows_in(whole)


@settings(max_examples=60)
@given(histories)
def test_summary_and_tail_say_what_the_whole_ledger_says(plan: list[Step]) -> None:
    history = History()
    history.run()
    for step in plan:
        step(history)
    log = history.log
    whole = log.whole()
    opened = now(open_ledger(log, log.end))
    assert_same(log, opened, whole)


@settings(max_examples=60)
@given(histories, st.sets(st.integers(0, 120), max_size=6), st.booleans())
def test_a_lookup_by_blocks_is_a_lookup_in_the_whole_map(plan: list[Step], offsets: set[int], backward: bool) -> None:
    history = History()
    history.run()
    for step in [*plan, lambda history: history.summarise()]:
        step(history)
    log = history.log
    whole = log.whole()
    opened = now(open_ledger(log, log.end))
    names = [place("a.orders" if backward else "orders", number) for number in range(3)]
    maps = now(load_maps(log, opened, LANE, dict.fromkeys(names, offsets), {}, backward=backward))
    by_place: dict[TopicPartition, list[Any]] = {}
    for receipt in receipts(whole):
        by_place.setdefault(receipt.target if backward else receipt.source, []).append(receipt)
    assert maps.keys() == by_place.keys()
    make = OffsetMap.backward if backward else OffsetMap.forward
    for name, ones in by_place.items():
        full = make(ones, gaps(whole, LANE))
        for offset in offsets:
            assert maps[name].translate(offset) == full.translate(offset), (name, offset)


def test_a_ledger_that_was_read_whole_is_summarised_however_little_lies_behind_its_last_portion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(summary, "SUMMARISED_FROM", 20)
    history = History()
    history.run()
    for _ in range(12):
        history.finish(history.chunk([0, 1, 2], [1, 2, 3]), commits=True)
    log = history.log
    log.reads.clear()
    whole = now(open_ledger(log, log.end))
    assert len(log.reads) > 2, "read in portions"
    assert is_due(whole)
    history.summarise()
    then = now(open_ledger(log, log.end))
    assert not is_due(then)


@pytest.mark.parametrize(
    ("age_ms", "kept_ms", "counts"), [(0, 86_400_000, True), (50_000_000, 86_400_000, False), (0, 0, False)]
)
def test_a_summary_with_holes_behind_it_counts_only_while_tombstones_are_kept(
    age_ms: int, kept_ms: int, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(log=ModelLog(kept_ms=kept_ms))
    history.run()
    for _ in range(6):
        history.finish(history.chunk([0, 1, 2], [1, 2, 3]), commits=True)
    history.summarise()
    log = history.log
    for number in range(2):
        log.write(pause_record(replace(PAUSE, who=str(number))))
    log.taken.add(log.end - 2)
    later = time.time_ns() + age_ms * 1_000_000
    monkeypatch.setattr("ferry.run.summaries.time.time_ns", lambda: later)
    opened = now(open_ledger(log, log.end))
    assert (opened.rolled.summarised > 0) is counts
    assert_same(log, opened, log.whole())
