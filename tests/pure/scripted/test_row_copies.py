"""What the real slot of transformed rows leaves at the target, and reports: retries, and rows that end early."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.transforms import Poison
from ferry.errors import Refused
from ferry.features.records.acts.cutoffs import Cutoff
from ferry.features.records.acts.reading import ReadWaits
from ferry.features.records.acts.row_slot import RowSlot
from ferry.features.records.acts.rows import COLUMNS, Rows, rows_of_piece
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.kafka.connect import codes
from ferry.messages.refusals import refused
from ferry.model import NOT_THROTTLED, Receipt, RefusalKind, Segment, ThrottleTime, TopicPartition
from tests.pure.protocol.world import TOPIC
from tests.pure.run.unit_flows import record_batches
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.lane import Lane, at_work, place
from tests.pure.scripted.row_lane import rows_of, rows_port
from tests.pure.scripted.wire import scripted

both_versions = pytest.mark.parametrize("version", [1, 2])
READ_COLUMNS = ("topic", *COLUMNS[2:8], "poison", "target")
"""Columns of a transformed record that `rows_of_piece` reads."""


def lane_of_rows(sizes: list[list[int]], version: int = 2) -> Lane:
    lane = Lane(sizes, version=version)
    lane.port = rows_port(lane)
    return lane


@both_versions
def test_a_chunk_after_the_other_costs_no_retry(version: int) -> None:
    lane = lane_of_rows([[6], [5]], version)
    with at_work(lane):
        result = lane.copy(lane.begin(lane.open("r")), chunk_bytes=1)
        assert (result.retries, result.refusals, lane.is_whole()) == (0, {}, True)
        assert [(one.start, one.end) for one in result.receipts if one.source == place()] == [
            (at, at + 1) for at in range(6)
        ]


@pytest.mark.slow
def test_a_source_partition_without_a_leader_is_left_out_and_the_others_go_on() -> None:
    lane = lane_of_rows([[3], [4], [5]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.source.leaders[place(1)] = -1
        result = lane.copy(attempt)
        assert {one: refusal.kind for one, refusal in result.refusals.items()} == {place(1): RefusalKind.NO_LEADER}
        assert [len(lane.copied(number)) for number in range(3)] == [3, 0, 5]
        lane.source.leaders[place(1)] = 1
        lane.copy(lane.begin(lane.open("again")))
        assert lane.is_whole()


@pytest.mark.slow
@both_versions
@pytest.mark.parametrize("skip", range(4))
def test_rows_since_the_last_commit_come_again_for_a_retry(version: int, skip: int) -> None:
    lane = lane_of_rows([[6], [5]], version)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, code=codes.NOT_LEADER_OR_FOLLOWER, skip=skip))
        result = lane.copy(attempt, chunk_bytes=1)
        assert (result.retries, lane.is_whole(), sum(one.records for one in result.receipts)) == (1, True, 11)


@pytest.mark.parametrize("skip", [1, 2], ids=["the second batch", "the last one"])
def test_a_chunk_counts_when_each_of_its_batches_is_acknowledged(skip: int) -> None:
    lane = lane_of_rows([[3], [3], [3]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        refused_late = Fault(
            api="Produce", topic=TOPIC, code=codes.NOT_LEADER_OR_FOLLOWER, late_s=0.5, skip=skip, times=1
        )
        lane.target.faults.append(refused_late)
        result = lane.copy(attempt)
        assert (refused_late.happened, result.retries, lane.is_whole()) == (1, 1, True)


@pytest.mark.parametrize(("slot", "other"), [(1, 0), (0, 1), (0, 7)], ids=["before its own", "after", "not planned"])
def test_a_row_for_a_partition_of_another_slot_is_refused(slot: int, other: int) -> None:
    lane = Lane([[2], [2]])
    rows: list[tuple[Any, ...]] = [
        (TOPIC, number, number, at, 1_000, b"k", b"%d" % at, []) for number in sorted((slot, other)) for at in range(2)
    ]
    lane.port = lambda wiring: RowSlot(wiring, rows=Rows(record_batches(rows, 2)))
    with at_work(lane):
        plan = lane.open("r", 2)
        (own,) = (piece.slot for piece in plan.slices if piece.target == place(slot))
        with pytest.raises(Refused):
            lane.copy(lane.begin(plan), own)
        assert (lane.copied(0), lane.copied(1)) == ([], [])


@dataclass
class Ending:
    """Rows of partition 0 that end before offset `at`, because what is after them cannot be read."""

    lane: Lane
    at: int
    cutoffs: dict[TopicPartition, Cutoff] = field(default_factory=dict)

    def rows(self) -> Iterator[pa.RecordBatch]:
        rows: list[tuple[Any, ...]] = [
            (TOPIC, 0, 0, offset, 1_000, b"0", b"%d" % offset, []) for offset in range(self.at)
        ]
        yield from record_batches(rows, 2)
        refusal = refused("said", *place(), kind=RefusalKind.CORRUPT, why="it is corrupt")
        self.cutoffs[place()] = Cutoff(offset=self.at, refusal=refusal)


@pytest.mark.parametrize("at", [0, 1, 4])
def test_rows_that_end_early_are_not_taken_for_left_out_by_the_transform(at: int) -> None:
    lane = Lane([[6]])
    ending = Ending(lane, at)
    lane.port = lambda wiring: RowSlot(wiring, rows=Rows(ending.rows()), cutoffs=ending.cutoffs)
    with at_work(lane):
        result = lane.copy(lane.begin(lane.open("r")), chunk_bytes=1)
        assert {one: refusal.kind for one, refusal in result.refusals.items()} == {place(): RefusalKind.CORRUPT}
        assert (lane.copied(0), lane.ends()) == (list(range(at)), {place(): at} if at else {})
        lane.port = rows_port(lane)
        lane.copy(lane.begin(lane.open("again")))
        assert lane.is_whole()


def test_rows_that_a_transform_leaves_out_are_holes_of_the_receipt() -> None:
    lane = Lane([[6]])

    def some() -> Iterator[pa.RecordBatch]:
        for batch in rows_of(lane):
            yield batch.filter(pa.compute.field("offset").isin([1, 2, 4])) if batch.num_rows else batch

    lane.port = lambda wiring: RowSlot(wiring, rows=Rows(some()))
    with at_work(lane):
        (receipt,) = lane.copy(lane.begin(lane.open("r"))).receipts
        assert (lane.copied(0), receipt.start, receipt.end, receipt.records) == ([1, 2, 4], 0, 6, 3)
        assert receipt.segments == (
            Segment(source_start=1, target_start=0, count=2),
            Segment(source_start=4, target_start=2, count=1),
        )


NO_ROWS = pa.RecordBatch.from_arrays([pa.nulls(0) for _ in COLUMNS], names=list(COLUMNS))
"""What a batch of the source becomes if its records are left out."""


def test_rows_that_are_far_apart_hold_no_transaction_open() -> None:
    """A filter keeps one record in many, and a throttle makes each batch take 5 s."""
    lane = Lane([[3], [3]])
    with scripted(lane.source, lane.target) as (clock, clusters):

        def sparse() -> Iterator[pa.RecordBatch]:
            first, *_, last = rows_of(lane)
            yield first
            for _ in range(10):
                clock.skipped += 5
                yield NO_ROWS
            yield last

        lane.connect(clusters)
        lane.port = lambda wiring: RowSlot(wiring, rows=Rows(sparse()))
        attempt, began = lane.begin(lane.open("r")), clock.skipped
        ends: list[tuple[int, list[int]]] = []

        def committed(receipts: list[Receipt]) -> None:
            ends.append((int(clock.skipped - began), [one.end for one in receipts]))

        assert lane.copy(attempt, committed=committed).retries == 0
        assert ends == [(30, [2]), (50, [3, 3])]


def test_the_event_loop_works_while_rows_are_read() -> None:
    lane, turns = Lane([[6]]), list[bool]()
    with at_work(lane):

        def slow() -> Iterator[pa.RecordBatch]:
            for batch in rows_of(lane):
                turn = threading.Event()
                lane.clusters[1].loop.call_soon_threadsafe(turn.set)
                turns.append(turn.wait(5))
                yield batch

        lane.port = lambda wiring: RowSlot(wiring, rows=Rows(slow()))
        lane.copy(lane.begin(lane.open("r")))
        assert (turns, lane.is_whole()) == ([True] * 3, True)


def test_a_slot_whose_rows_are_all_left_out_can_be_stopped() -> None:
    lane, read = Lane([[6]]), list[int]()

    def none() -> Iterator[pa.RecordBatch]:
        for number in range(1000):
            read.append(number)
            yield NO_ROWS

    lane.port = lambda wiring: RowSlot(wiring, rows=Rows(none()))
    with at_work(lane):
        result = lane.copy(lane.begin(lane.open("r")), stop=lambda: len(read) >= 3)
        assert (result.stopped, result.receipts, len(read)) == (True, [], 3)


@pytest.mark.slow
def test_receipts_have_the_waits_of_what_reads_meanwhile() -> None:
    lane, waits = Lane([[6]]), ReadWaits()

    def slow() -> Iterator[pa.RecordBatch]:
        for batch in rows_of(lane):
            waits.throttle_s += 1.5
            waits.quota_s += 0.25
            yield batch

    lane.port = lambda wiring: RowSlot(wiring, rows=Rows(slow()), waits=waits)
    with at_work(lane):
        receipts = lane.copy(lane.begin(lane.open("r")), chunk_bytes=1).receipts
        throttled = [one.throttled for one in receipts]
        assert throttled[0] == ThrottleTime(ferry=1500, source=250)
        assert sum(throttled, NOT_THROTTLED) == ThrottleTime(ferry=4500, source=750)


AIM = TopicPartition("b.t", 0)
OTHER = "b.elsewhere"


def judged(poison: Poison, whys: list[str | None], targets: list[str]) -> dict[str, list[bool]]:
    """Which records that a transform has read are refused, and which are letters."""
    count = len(whys)
    columns = [
        pa.array(["t"] * count),
        pa.array([0] * count, pa.int32()),
        pa.array(range(count), pa.int64()),
        pa.array([1_000] * count, pa.int64()),
        *([pa.array([b"k"] * count, pa.binary())] * 2),
        pa.array([[]] * count, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        pa.array(whys, pa.string()),
        pa.array(targets, pa.string()),
    ]
    letters = DeadLetters(topic="letters")
    rule = PoisonRule(transform="x", poison=poison, letters=letters)
    found = rows_of_piece(rule, pa.RecordBatch.from_arrays(columns, names=[*READ_COLUMNS]), AIM)
    assert found.schema.names == [*COLUMNS]
    return {name: [why is not None for why in found.column(name).to_pylist()] for name in ("refusal", "letter")}


@pytest.mark.parametrize(
    ("poison", "refusals", "letters"),
    [
        (Poison.FAIL, [False, True, False], [False] * 3),
        (Poison.SKIP, [False] * 3, [False, True, False]),
    ],
)
def test_a_record_that_cannot_be_transformed_is_refused_or_a_letter(
    poison: Poison, refusals: list[bool], letters: list[bool]
) -> None:
    assert judged(poison, [None, "no", None], [AIM.topic] * 3) == {"refusal": refusals, "letter": letters}


@pytest.mark.parametrize("poison", Poison)
def test_a_record_that_is_sent_to_another_topic_is_refused_whatever_the_rule(poison: Poison) -> None:
    found = judged(poison, [None, None], [AIM.topic, OTHER])
    assert found == {"refusal": [False, True], "letter": [False] * 2}
