"""Rows of one log are of one history, or are refused: against a model of a log that loses its end under new leaders.

The promise: what the next plan, by the last receipt's leader epoch, takes for sound is what the log has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.errors import Retryable
from ferry.features.records.acts.row_parts import SlicePart
from ferry.features.records.acts.source_logs import EpochNotes, SourceLogs, look_before
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, PartitionInfo, TopicInfo
from ferry.kafka.fetch.epoch_check import UNKNOWN_EPOCH, Mark
from ferry.model import Origin, Plan, RefusalKind, Slice, TopicPartition
from ferry.protocol.drops import Blocked, Drop, Dropped
from tests.golden import Golden
from tests.pure.decide.values import FLOW, LANE, dealt_slice

PLACE = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)
NOTHING = Mark(UNKNOWN_EPOCH, -1)


@dataclass
class Log:
    """Records, each with its leader epoch and a number of its own."""

    epoch: int = 5
    records: list[tuple[int, int]] = field(default_factory=list)
    numbers: Iterable[int] = field(default_factory=count)
    leads: bool = True

    def append(self, many: int) -> None:
        self.records += [(self.epoch, number) for number, _ in zip(self.numbers, range(many), strict=False)]

    def elect(self, kept: int) -> None:
        """A new leader has so many of the records."""
        del self.records[kept:]
        self.epoch += 1

    def end_of(self, epoch: int) -> int:
        """As a broker answers (LeaderEpochFileCache.endOffsetFor)."""
        return sum(one <= epoch for one, _ in self.records)


class Brokers:
    """One broker with some logs; its metadata are those of the last look."""

    alias = "a"

    def __init__(self, logs: dict[TopicPartition, Log]) -> None:
        self.logs = logs
        self.asked = 0
        self.loop = self
        self.topics: dict[str, TopicInfo] = {}
        self._tell()

    def _tell(self) -> None:
        parts = {
            place.partition: PartitionInfo(
                partition=place.partition, leader=1, leader_epoch=log.epoch, replicas=(1,), in_sync=(1,)
            )
            for place, log in self.logs.items()
        }
        self.topics = {"t": TopicInfo(name="t", topic_id=UUID(int=7), partitions=parts, internal=False)}

    async def sleep(self, _: float) -> None:
        """Return."""

    async def refresh(self, _: object) -> None:
        self._tell()

    def leader(self, place: TopicPartition) -> int:
        if not self.logs[place].leads:
            raise Retryable(f"{place} has no leader at the moment")
        return 1

    async def ask(self, request: Any, _: int) -> Any:
        self.asked += 1
        return SimpleNamespace(
            topics=[
                SimpleNamespace(
                    topic=topic.topic,
                    partitions=[self._answer(TopicPartition(topic.topic, p.partition), p) for p in topic.partitions],
                )
                for topic in request.topics
            ]
        )

    def _answer(self, place: TopicPartition, asked: Any) -> Any:
        log = self.logs[place]
        fenced = asked.current_leader_epoch not in (UNKNOWN_EPOCH, log.epoch)
        end = log.end_of(asked.leader_epoch)
        code = codes.FENCED_LEADER_EPOCH if fenced else 0
        return SimpleNamespace(partition=place.partition, error_code=code, end_offset=-1 if fenced else end)


def brokers_of(*logs: Log) -> tuple[Brokers, Cluster]:
    made = Brokers(dict(zip((PLACE, OTHER), logs, strict=False)))
    return made, cast("Cluster", made)


def piece(end: int, mark: Mark = NOTHING, start: int = 0) -> Slice:
    return Slice(
        source=PLACE,
        target=TopicPartition("a.t", 0),
        start=start,
        end=end,
        slot=0,
        bytes_estimate=0,
        first=False,
        read_epoch=mark.epoch,
        read_end=mark.end,
    )


def unit(starts: tuple[int, ...], ends: tuple[int, ...], epochs: tuple[int, ...] = ()) -> Slice:
    return dealt_slice(
        topic="t",
        target=TopicPartition("a.t", 0),
        starts=starts,
        ends=ends,
        slot=0,
        since=1,
        partitions=1,
        digest="d",
        epochs=epochs,
    )


def part(of: Slice, start: int, end: int) -> SlicePart:
    plan = Plan(flow=FLOW, lane=LANE, run="r", generation=1, slots=1, slices=())
    return SlicePart(plan=plan, origin=Origin(), piece=of, start=start, end=end, target_next=None)


# What happens to a log: records come, or a new leader has all of them but so many.
CHANGES = st.lists(
    st.one_of(st.tuples(st.just("append"), st.integers(1, 6)), st.tuples(st.just("elect"), st.integers(0, 9)))
)


def change(log: Log, changes: Iterable[tuple[str, int]]) -> int:
    """Let it happen; up to where the log stayed as it was."""
    kept = len(log.records)
    for what, many in changes:
        if what == "append":
            log.append(many)
        else:
            log.elect(max(0, len(log.records) - many))
            kept = min(kept, len(log.records))
    return kept


@given(before=CHANGES, between=st.lists(CHANGES, max_size=4), after=CHANGES, length=st.integers(1, 12))
def test_what_many_tasks_have_read_is_of_one_log_or_refused(
    before: list[tuple[str, int]],
    between: list[list[tuple[str, int]]],
    after: list[tuple[str, int]],
    length: int,
) -> None:
    log = Log()
    log.append(length)
    _, source = brokers_of(log)
    end = len(log.records)  # the plan's
    change(log, before)
    seen = asyncio.run(look_before(source, {PLACE: (0, end)}))
    assert not seen.silent
    rows: list[tuple[int, int]] = []
    kept = len(log.records)
    for number in range(end):  # a task for each record, at its own time
        kept = min(kept, change(log, between[number] if number < len(between) else []))
        rows += log.records[number : number + 1]
    logs = SourceLogs(source=source, seen=seen.marks, notes=None)
    epochs = asyncio.run(logs.check([piece(end)]))
    if len(log.records) >= end and kept >= min(end, seen.marks[PLACE].end):
        assert not logs.cuts, "nothing that was to be read was lost"
    if logs.cuts:
        assert (epochs, logs.cuts[PLACE].refusal.kind) == ({}, RefusalKind.SOURCE_TRUNCATED)
        return
    assert len(log.records) >= end
    change(log, after)
    if len(rows) == end and log.end_of(epochs[PLACE]) >= end:
        assert rows == log.records[:end]


@given(data=st.data())
def test_what_one_process_reads_and_writes_is_of_one_log_or_the_next_plan_tells(data: st.DataObject) -> None:
    log = Log()
    log.append(data.draw(st.integers(1, 12)))
    _, source = brokers_of(log)
    end = len(log.records)
    written: list[tuple[int, int]] = []
    mark = Mark(UNKNOWN_EPOCH, -1)  # of the last receipt
    refused = False
    for _ in range(data.draw(st.integers(1, 4))):  # attempts: each reads from the plan's start again
        notes, rows = EpochNotes(), list[tuple[int, int]]()
        logs = SourceLogs(source=source, seen={}, notes=notes)
        of = piece(end, mark)
        asyncio.run(logs.check([of]))
        at = len(written)
        for _ in range(data.draw(st.integers(1, 4))):
            change(log, data.draw(CHANGES))
            if rows and log.end_of(rows[-1][0]) < len(rows):
                break  # who reads looks at the log in each leader epoch (test_lineage)
            more = log.records[len(rows) : data.draw(st.integers(len(rows), end))]
            for one in more:
                rows.append(one)
                notes.note(PLACE, Mark(one[0], len(rows)))
            change(log, data.draw(CHANGES))
            if len(rows) <= at:
                continue
            to = data.draw(st.integers(at + 1, len(rows)))
            chunk = part(of, at, to)
            drops = vouched(logs, chunk)
            if drops:
                assert [one.refusal.kind for one in drops] == [RefusalKind.SOURCE_TRUNCATED]
                assert log.end_of(mark.epoch) < mark.end
                refused = True
                break
            assert chunk.source_epoch == rows[to - 1][0]
            written += rows[at:to]
            mark, at = Mark(chunk.source_epoch, to), to
        if refused:
            break
    change(log, data.draw(CHANGES))
    if mark.epoch != UNKNOWN_EPOCH and log.end_of(mark.epoch) >= mark.end:
        assert written == log.records[: len(written)]


def vouched(logs: SourceLogs, chunk: SlicePart) -> tuple[Drop, ...]:
    try:
        asyncio.run(logs.vouch([chunk]))
    except Dropped as dropped:
        return dropped.drops
    return ()


def test_nobody_is_asked_while_the_leader_stays() -> None:
    log = Log()
    log.append(9)
    brokers, source = brokers_of(log)
    logs = SourceLogs(source=source, seen={PLACE: Mark(5, 9)}, notes=None)
    assert asyncio.run(logs.check([piece(9, Mark(5, 4), 4)])) == {PLACE: 5}
    assert brokers.asked == 1, "once how far the log reaches"
    notes = EpochNotes()
    notes.note(PLACE, Mark(5, 9))
    logs = SourceLogs(source=source, seen={}, notes=notes)
    of = piece(9, Mark(5, 4), 4)
    chunk = part(of, 4, 7)
    assert asyncio.run(logs.check([of])) == {}
    assert not vouched(logs, chunk)
    assert (chunk.source_epoch, brokers.asked) == (5, 1)


def test_units_lose_the_source_partition_that_was_cut_alone(golden: Golden) -> None:
    cut, whole = Log(), Log()
    for log in (cut, whole):
        log.append(9)
    _, source = brokers_of(cut, whole)
    cut.elect(6)
    cut.append(9)
    whole.elect(9)
    logs = SourceLogs(source=source, seen={PLACE: Mark(5, 9), OTHER: Mark(5, 9)}, notes=None)
    assert asyncio.run(logs.check([unit((0, 0), (9, 9))])) == {OTHER: 6}
    (held,) = logs.cuts.values()
    assert held.refusal.code == "source.truncated.before"
    assert dict(held.refusal.facts).items() >= {"cluster": "a", "end": 9, "cut": 6, "epoch": 5}.items()
    golden(held.refusal.message)


@pytest.mark.parametrize("of", [piece(20, Mark(5, 9), 9), unit((9,), (20,), (5,))])
def test_what_an_earlier_attempt_has_written_is_not_gone_on_with_from_another_log(of: Slice) -> None:
    """Also where the tasks of this attempt have read nothing but the new one."""
    log = Log()
    log.append(9)
    _, source = brokers_of(log)
    log.elect(6)
    log.append(30)
    seen = asyncio.run(look_before(source, {PLACE: (9, 20)}))
    assert seen.marks == {PLACE: Mark(6, 20)}
    logs = SourceLogs(source=source, seen=seen.marks, notes=None)
    assert asyncio.run(logs.check([of])) == {}
    refusal = logs.cuts[PLACE].refusal
    assert refusal.code == "source.truncated.read"
    assert dict(refusal.facts).items() >= {"cluster": "a", "end": 9, "cut": 6}.items()


def test_a_log_that_nobody_tells_of_is_hindered_and_none_other(golden: Golden) -> None:
    log, other = Log(), Log()
    for one in (log, other):
        one.append(9)
    log.leads = False
    _, source = brokers_of(log, other)
    seen = asyncio.run(look_before(source, {PLACE: (3, 9), OTHER: (0, 9)}))
    assert (seen.marks, set(seen.silent)) == ({OTHER: Mark(5, 9)}, {PLACE})
    assert (seen.silent[PLACE].kind, seen.silent[PLACE].offset) == (RefusalKind.NO_LEADER, 3)
    logs = SourceLogs(source=source, seen=seen.marks, notes=None)
    pieces = [piece(9), replace(piece(9), source=OTHER, target=TopicPartition("a.t", 1))]
    with pytest.raises(Blocked) as caught:
        asyncio.run(logs.check(pieces))
    golden(caught.value)
    assert [one.piece for one in caught.value.drops] == pieces[:1]


def test_notes_tell_of_each_offset_the_epoch_of_its_batch() -> None:
    notes = EpochNotes()
    for end, epoch in ((4, 2), (9, 2), (12, 3), (20, 7)):
        notes.note(PLACE, Mark(epoch, end))
    found = [notes.epoch(PLACE, end) for end in (1, 4, 5, 9, 10, 12, 13, 20, 21)]
    assert found == [2, 2, 2, 2, 3, 3, 7, 7, UNKNOWN_EPOCH]
    assert notes.epoch(OTHER, 1) == UNKNOWN_EPOCH
