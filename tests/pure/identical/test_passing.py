"""A copy whose source's log does not begin at 0: empty records, crashes among them, two writers, what is deleted."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from ferry.errors import Refused, Superseded
from ferry.features.identical.rules.empty import (
    BATCH_RATE,
    MOST_AT_ONCE,
    MOST_BYTES,
    at_once,
    cost_of,
    empty_batch,
    empty_until,
)
from ferry.kafka.connect import codes
from ferry.ledger.codec import decode_key
from ferry.ledger.ledger import fold
from ferry.ledger.producer_codec import PRODUCER, first_offsets, sending_records
from ferry.ledger.receipts import receipts
from ferry.model import PLAN_VERSION, Fate, LedgerRecord, Record, RefusalKind
from ferry.protocol.names import ledger_topic
from ferry.wire.batch import HEADER_BYTES, batches, check, obstacle, producer_of
from ferry.wire.content import contents
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.identical.marking import Marking
from tests.pure.identical.test_planned import PIECE
from tests.pure.identical.test_slot import Identical, found
from tests.pure.protocol.world import FLOW, LANE, TOPIC
from tests.pure.scripted.batches import row
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.lane import at_work, place
from tests.pure.scripted.wire import scripted

BEGINS = 1_000
AT_ONCE = 400
"""Empty records of a batch here."""
BATCHES = -(-BEGINS // AT_ONCE)


class Later(Identical):
    """A lane whose source has deleted the first records of partition 0."""

    def __init__(self, partitions: Sequence[Sequence[int]], begins: int = BEGINS) -> None:
        super().__init__([[begins, *partitions[0]], *partitions[1:]])
        self.target.settings = {"max.message.bytes": str(HEADER_BYTES + AT_ONCE * MOST_BYTES)}
        self.delete_at_source(begins)
        self.found = replace(self.found, may_pass=True) if self.found is not None else None

    def delete_at_source(self, begins: int) -> None:
        """The source's retention goes on."""
        self.source.begins[place()] = begins

    def empty(self) -> int:
        """How many empty records the target's log has; fails if the source's records are not at their offsets."""
        entries = self.target.log(TOPIC).entries
        found = [row(entry.payload)[2] for entry in entries]
        count = next((at for at, value in enumerate(found) if value is not None), len(found))
        assert [int(value or b"") for value in found[count:]] == list(range(count, len(found)))
        return count

    def is_right(self, begins: int = BEGINS) -> bool:
        """Whether the target's log begins and ends where the source's does, with the same records."""
        log = self.target.log(TOPIC)
        return (self.empty(), self.target.begins.get(place(), 0), log.end) == (
            begins,
            begins,
            self.source.log(TOPIC).end,
        )


def test_the_log_begins_where_the_sources_does_and_the_receipts_too() -> None:
    lane = Later([[3, 2], [4]])
    with at_work(lane):
        plan = lane.open("r")
        result = lane.copy(lane.begin(plan))
        assert (lane.is_right(), lane.same_up_to(1)) == (True, 4)
        assert (result.refusals, result.retries) == ({}, 0)
        ranges = {one.target: (one.start, one.end, one.target_next, one.records) for one in receipts(lane.view())}
        assert ranges == {place(0): (BEGINS, BEGINS + 5, BEGINS + 5, 5), place(1): (0, 4, 4, 4)}
        assert first_offsets(lane.view(), LANE) == {place(0): {BEGINS}, place(1): {0}}
        lane.produce(0, 2)
        lane.copy(lane.begin(lane.open("second")))
        assert lane.is_right()


def test_it_is_refused_with_what_it_costs_unless_the_file_permits_it() -> None:
    lane = Later([[3], [4]])
    assert lane.found is not None
    lane.found = replace(lane.found, may_pass=False)
    with at_work(lane):
        plan = lane.open("r")
        (refusal,) = plan.refusals
        assert (refusal.code, refusal.partition, refusal.kind) == ("identical.first", 0, RefusalKind.INVALID_CONFIG)
        cost = cost_of([(BEGINS, None)])
        assert {**dict(refusal.facts), "offset": BEGINS, "seconds": cost.seconds, "bytes": cost.bytes} == dict(
            refusal.facts
        )
        lane.copy(lane.begin(plan))
        assert (lane.target.log(TOPIC).end, lane.same_up_to(1)) == (0, 4)


@pytest.mark.slow
@pytest.mark.parametrize("fate", ["lost", "late", "applied"])
@pytest.mark.parametrize("skip", range(BATCHES + 1))
def test_an_answer_that_is_missing_is_found_in_the_log(skip: int, fate: str) -> None:
    """Among the empty records, and of the first batch of records."""
    lane = Later([[3, 2]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(
            Fault(api="Produce", topic=TOPIC, lost=True, applied=fate == "applied", held=fate == "late", skip=skip)
        )
        result = lane.copy(attempt)
        lane.target.release()
        assert (lane.is_right(), result.refusals) == (True, {})


@pytest.mark.slow
@pytest.mark.parametrize("skip", range(BATCHES + 1))
@pytest.mark.parametrize("applied", [True, False])
def test_a_run_that_dies_is_continued_by_the_next_one(skip: int, applied: bool) -> None:
    lane = Later([[3, 2]])
    with scripted(lane.source, lane.target, lane.target) as (_, (source, target, elsewhere)):
        lane.connect([source, target])
        target.loop.run(elsewhere.refresh, None)
        held = Fault(api="Produce", topic=TOPIC, held=True, skip=skip)
        lane.target.faults.append(held)
        lane.start(lane.begin(lane.open("first")), target=elsewhere)
        lane.run_until(lambda: held.happened > 0)
        if applied:
            lane.target.release()
        lane.copy(lane.begin(lane.open("second")))
        assert lane.is_right()
        lane.target.release()
        assert lane.is_right(), "a late batch, of empty records or others, lands nowhere"
        assert sum(one.records for one in receipts(lane.view(), lane=LANE)) == 5


@pytest.mark.slow
def test_a_run_that_dies_before_it_deletes_leaves_that_to_the_next_one() -> None:
    lane = Later([[3, 2]])
    with at_work(lane):
        attempt = lane.begin(lane.open("first"))
        # the first request asks for the permission alone
        lane.target.faults.append(Fault(api="DeleteRecords", code=codes.TOPIC_AUTHORIZATION_FAILED, skip=1))
        result = lane.copy(attempt)
        assert [one.kind for one in result.refusals.values()] == [RefusalKind.NOT_AUTHORIZED]
        assert (lane.empty(), lane.target.begins.get(place(), 0), lane.ends()) == (BEGINS, 0, {})
        lane.copy(lane.begin(lane.open("second")))
        assert (lane.is_right(), lane.ends()) == (True, {place(): BEGINS + 5})


@pytest.mark.slow
def test_a_run_that_dies_after_it_deleted_leaves_the_receipts_to_the_next_one() -> None:
    lane = Later([[3, 2]])
    with at_work(lane):
        attempt = lane.begin(lane.open("first"))
        lane.target.faults.append(Fault(api="TxnOffsetCommit", code=codes.GROUP_AUTHORIZATION_FAILED))
        with pytest.raises(Refused):
            lane.copy(attempt)
        assert (lane.is_right(), lane.ends()) == (True, {})
        lane.copy(lane.begin(lane.open("second")))
        assert (lane.is_right(), lane.ends()) == (True, {place(): BEGINS + 5})
        assert first_offsets(lane.view(), LANE) == {place(0): {BEGINS}}


@pytest.mark.slow
def test_a_run_that_is_stopped_among_the_empty_records_copies_no_record_of_the_partition() -> None:
    lane = Later([[3, 2], [4]])
    with at_work(lane):
        result = lane.copy(lane.begin(lane.open("first")), stop=lambda: lane.target.log(TOPIC).end >= AT_ONCE)
        assert (result.stopped, result.refusals) == (True, {})
        assert (lane.target.log(TOPIC).end, lane.empty()) == (AT_ONCE, AT_ONCE)
        lane.copy(lane.begin(lane.open("second")))
        assert (lane.is_right(), lane.same_up_to(1)) == (True, 4)


def test_a_slot_whose_time_is_over_among_the_empty_records_copies_the_other_partitions_alone() -> None:
    """It still has time for one chunk then."""
    lane, over = Later([[3, 2], [4]]), [True]

    def once() -> bool:
        return lane.target.log(TOPIC).end >= AT_ONCE and bool(over) and over.pop()

    with at_work(lane):
        result = lane.copy(lane.begin(lane.open("first")), stop=once)
        assert (result.stopped, result.refusals) == (False, {})
        assert (lane.target.log(TOPIC).end, lane.empty(), lane.ends()) == (AT_ONCE, AT_ONCE, {place(1): 4})
        lane.copy(lane.begin(lane.open("second")))
        assert (lane.is_right(), lane.same_up_to(1)) == (True, 4)


def test_without_the_permission_to_delete_nothing_is_written() -> None:
    lane = Later([[3]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="DeleteRecords", code=codes.TOPIC_AUTHORIZATION_FAILED, times=99))
        (refusal,) = lane.copy(attempt).refusals.values()
        assert (refusal.kind, lane.target.log(TOPIC).end) == (RefusalKind.NOT_AUTHORIZED, 0)


@pytest.mark.slow
@pytest.mark.parametrize("code", [-1, codes.POLICY_VIOLATION])
def test_a_lasting_error_of_the_deletion_leaves_its_partition_out_and_the_others_are_copied(code: int) -> None:
    lane = Later([[3], [4]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="DeleteRecords", code=code, times=99, skip=1))
        found = lane.copy(attempt).refusals
        assert [(at, one.code) for at, one in found.items()] == [(place(), "target.fails")]
        assert (lane.ends(), lane.same_up_to(1)) == ({place(1): 4}, 4)


class LaterMarking(Marking):
    """A lane whose source has deleted all but the marker of its last transaction. A run passes that."""

    def __init__(self) -> None:
        super().__init__("rrrrrc")
        self.target.settings = {"max.message.bytes": str(HEADER_BYTES + AT_ONCE * MOST_BYTES)}
        self.first = self.source.log(TOPIC).end - 1
        self.source.begins[place()] = self.first
        self.found = replace(found(may_mark=True), may_pass=True)

    def begins(self) -> int:
        """Where the target's log begins."""
        return self.target.begins.get(place(), 0)

    def sendings(self) -> list[tuple[str, list[int]]]:
        """Which runs said last that batches were sent, and with which first offset."""
        found = [(key, json.loads(record.value or b"")) for key, record in self.view().of_kind(PRODUCER)]
        return [(value["run"], key[4:]) for key, value in found if len(key) > 2]


@pytest.mark.slow
def test_empty_records_before_markers_alone_are_deleted_when_a_later_run_has_a_record() -> None:
    lane = LaterMarking()
    with at_work(lane):
        assert lane.run("first").refusals == {}
        assert (lane.ends(), lane.begins()) == ({place(): lane.first + 1}, 0)
        lane.produce_aborted(0, 1)
        assert lane.run("second").refusals == {}
        assert (lane.ends(), lane.begins()) == ({place(): lane.first + 3}, 0)
        lane.grow("r")
        assert lane.run("third").refusals == {}
        assert (lane.ends(), lane.begins()) == ({place(): lane.first + 4}, lane.first)
        assert lane.open("fourth").version < PLAN_VERSION, "nothing is left to delete"


@pytest.mark.slow
@pytest.mark.parametrize("attempts", [1, 2])
def test_empty_records_before_markers_alone_are_deleted_after_a_fault(attempts: int) -> None:
    """The chunk of the markers is committed. The next one meets an error, in the same process or in another one."""
    lane = LaterMarking()
    lane.grow("rr")
    with at_work(lane):
        plan = lane.open("first")
        if attempts == 2:
            lane.copy(lane.begin(plan), chunk_bytes=1, stop=lambda: bool(lane.ends()))
            assert (lane.ends(), lane.begins()) == ({place(): lane.first + 1}, 0)
        else:
            lane.target.faults.append(Fault(api="Produce", topic=TOPIC, code=7, skip=1))
        assert lane.copy(lane.begin(plan), chunk_bytes=1).refusals == {}
        assert (lane.ends(), lane.begins()) == ({place(): lane.first + 3}, lane.first)


def test_a_run_that_dies_before_it_deletes_what_is_before_markers_leaves_that_to_the_next_one() -> None:
    lane = LaterMarking()
    with at_work(lane):
        lane.run("first")
        lane.grow("r")
        attempt = lane.begin(lane.open("second"))
        lane.target.faults.append(Fault(api="DeleteRecords", code=codes.TOPIC_AUTHORIZATION_FAILED))
        assert [one.kind for one in lane.copy(attempt).refusals.values()] == [RefusalKind.NOT_AUTHORIZED]
        assert (lane.ends(), lane.begins()) == ({place(): lane.first + 1}, 0)
        assert lane.run("third").refusals == {}
        assert (lane.ends(), lane.begins()) == ({place(): lane.first + 2}, lane.first)


def test_a_clock_that_the_ledger_stamps_adds_no_first_offset() -> None:
    """A slot with markers of earlier writers writes a record again for that."""
    lane = LaterMarking()
    with at_work(lane):
        lane.run("first")
        lane.produce_aborted(0, 1)
        lane.target.faults.append(Fault(api="WriteTxnMarkers", lost=True))
        lane.copy(lane.begin(lane.open("second")))
        assert lane.until()
        lane.run("third")
        assert sorted(lane.sendings()) == [("first", [lane.first]), ("third", [])]


def test_nothing_is_deleted_up_to_the_end_of_the_log() -> None:
    """Where the copy ends among the empty records, they stay: a broker that loads such a log may begin it at 0."""
    lane = Later([[3]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(
            Fault(api="Produce", topic=TOPIC, code=codes.TOPIC_AUTHORIZATION_FAILED, skip=BATCHES)
        )
        lane.copy(attempt)
        assert (lane.target.log(TOPIC).end, lane.target.begins.get(place(), 0)) == (BEGINS, 0)


@pytest.mark.slow
def test_another_first_offset_is_refused_for_a_partition_without_receipts() -> None:
    """The brokers compare sequence numbers alone: an empty record could count as the source's."""
    lane = Later([[3, 2]])
    with at_work(lane):
        attempt = lane.begin(lane.open("first"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, code=codes.TOPIC_AUTHORIZATION_FAILED, skip=1))
        lane.copy(attempt)
        end = lane.target.log(TOPIC).end
        assert 0 < end < BEGINS
        for begins in (BEGINS + 3, BEGINS - 20, 0):
            lane.delete_at_source(begins)
            (refusal,) = lane.open(f"from {begins}").refusals
            facts = dict(refusal.facts)
            assert (refusal.code, facts["offset"], facts["first"]) == ("identical.first.other", begins, BEGINS)
        lane.delete_at_source(BEGINS)
        lane.copy(lane.begin(lane.open("again")))
        assert lane.is_right()


def test_a_run_that_was_overtaken_before_its_first_empty_record_sends_none() -> None:
    lane = Later([[2]])
    ledger = ledger_topic(FLOW.source)
    with scripted(lane.source, lane.target, lane.target) as (_, (source, target, elsewhere)):
        lane.connect([source, target])
        target.loop.run(elsewhere.refresh, None)
        first = lane.begin(lane.open("first"))
        late = Fault(api="Produce", topic=ledger, held=True)
        lane.target.faults.append(late)
        slept = lane.start(first, target=elsewhere)
        lane.run_until(lambda: late.happened > 0)
        lane.delete_at_source(BEGINS + 1)
        lane.copy(lane.begin(lane.open("second")))
        lane.target.release()
        lane.run_until(lambda: slept.is_done)
        assert isinstance(slept.exception, Superseded)
        assert lane.is_right(BEGINS + 1)
        assert first_offsets(lane.view(), LANE) == {place(): {BEGINS, BEGINS + 1}}, "neither hides the other"


def overtaken(lane: Later, overtake: Callable[[], object]) -> None:
    """A run is about to pass the offsets before BEGINS. Another one begins at 0; then the first one says so."""
    with scripted(lane.source, lane.target, lane.target) as (_, (source, target, elsewhere)):
        lane.connect([source, target])
        target.loop.run(elsewhere.refresh, None)
        first = lane.begin(lane.open("first"))
        late = Fault(api="Produce", topic=ledger_topic(FLOW.source), held=True)
        lane.target.faults.append(late)
        slept = lane.start(first, target=elsewhere)
        lane.run_until(lambda: late.happened > 0)
        lane.delete_at_source(0)
        overtake()
        lane.target.release()
        lane.run_until(lambda: slept.is_done)
        assert isinstance(slept.exception, Superseded)
    assert first_offsets(lane.view(), LANE) == {place(): {0, BEGINS}}, "0 is a first offset like another one"


@pytest.mark.slow
def test_what_an_overtaken_run_says_late_deletes_no_record_of_its_successor() -> None:
    lane = Later([[3, 2]])
    overtaken(lane, lambda: lane.copy(lane.begin(lane.open("second"))))
    assert lane.is_right(0)
    lane.produce(0, 2)
    with at_work(lane):
        plan = lane.open("third")
        assert [piece.empty_until for piece in plan.slices] == [None]
        assert lane.copy(lane.begin(plan)).refusals == {}
    assert (lane.is_right(0), lane.ends()) == (True, {place(): BEGINS + 7})


@pytest.mark.slow
def test_what_an_overtaken_run_says_late_does_not_hide_that_records_without_receipts_begin_at_0() -> None:
    """Such records are not taken for empty ones when the source's log begins there by then."""
    lane = Later([[3, 2]])

    def dies() -> None:
        attempt = lane.begin(lane.open("second"))
        lane.target.faults.append(Fault(api="TxnOffsetCommit", code=codes.GROUP_AUTHORIZATION_FAILED))
        with pytest.raises(Refused):
            lane.copy(attempt)

    overtaken(lane, dies)
    lane.delete_at_source(BEGINS)
    with at_work(lane):
        plan = lane.open("third")
        assert [one.code for one in plan.refusals] == ["identical.first.other"]
        lane.copy(lane.begin(plan))
    assert lane.is_right(0)


@pytest.mark.parametrize(
    ("firsts", "received", "begin", "until"),
    [
        ({200}, 200, 0, 200),
        ({200}, 200, 199, 200),
        ({200}, 200, 200, None),
        ({200}, 200, None, 200),
        ({0, 200}, 200, 0, None),
        ({200, 300}, 200, 0, None),
        ({0, 200}, None, 0, None),
        ({200}, None, 0, None),
        ({200}, 0, 0, None),
        ({200}, 300, 0, None),
        ({0}, 0, 0, None),
        (set(), 200, 0, None),
    ],
)
def test_only_what_all_records_of_the_ledger_say_is_deleted_as_empty(
    firsts: set[int], received: int | None, begin: int | None, until: int | None
) -> None:
    piece = replace(PIECE, start=300, target_next=300)
    assert empty_until(piece, firsts, received, begin) == until
    assert empty_until(replace(piece, target_next=None), firsts, received, begin) is None


def test_an_earlier_ferry_named_no_offset_where_records_begin_at_0() -> None:
    records = sending_records(LANE, place(), first=0, producer_id=1, run="r", at_ms=1)
    assert [decode_key(one.key)[4:] for one in records] == [[], [0]]
    (bare, _), again = records, sending_records(LANE, place(), first=None, producer_id=1, run="r", at_ms=1)
    assert again == [bare], "it says again that batches were sent"
    known = LedgerRecord(offset=0, key=bare.key, value=bare.value, fate=Fate.COMMITTED, producer_id=-1)
    assert first_offsets(fold([known], 1), LANE) == {place(): {0}}


@pytest.mark.parametrize("skip", range(BATCHES))
def test_a_foreign_record_among_the_empty_ones_is_refused_after_one_batch(skip: int) -> None:
    lane = Later([[2]])
    stranger = build_batch([Record(key=b"0", value=b"77")], lane.at_ms, ProducerIdentity())
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(
            Fault(api="Produce", topic=TOPIC, skip=skip, then=lambda: lane.target.append(TOPIC, stranger))
        )
        (refusal,) = lane.copy(attempt).refusals.values()
        assert refusal.code in ("identical.shifted.empty", "identical.shifted", "identical.foreign")
        values = [row(entry.payload)[2] for entry in lane.target.log(TOPIC).entries]
        assert values.count(b"77") == 1
        assert len(values) - values.index(b"77") - 1 <= AT_ONCE
        assert (lane.ends(), lane.target.begins.get(place(), 0)) == ({}, 0)


@pytest.mark.slow
def test_empty_batches_are_taken_as_they_are_and_fit_whatever_a_broker_makes_of_them() -> None:
    for count in (1, 64, 65, 8_192, 8_193, MOST_AT_ONCE):
        data = empty_batch(1_000, count, producer=7, at_ms=5)
        (batch,) = batches(data)
        check(batch, TOPIC, 0)
        assert (batch.base_offset, batch.next_offset, batch.record_count) == (0, count, count)
        assert (producer_of(batch), batch.is_transactional, batch.is_control) == ((7, 0, 1_000), False, False)
        assert (batch.base_timestamp, batch.max_timestamp, obstacle(batch)) == (5, 5, None)
        rows = list(contents(batch, count * MOST_BYTES))
        assert [one.offset for one in rows] == list(range(count))
        assert {(one.key, one.value, one.timestamp) for one in rows} == {(None, None, 5)}
    assert (at_once(None), at_once(1_048_588), at_once(HEADER_BYTES + 20), at_once(1)) == (
        MOST_AT_ONCE,
        MOST_AT_ONCE,
        2,
        1,
    )


def test_the_cost_is_that_of_the_batches_that_are_written() -> None:
    for offsets in (MOST_AT_ONCE, 3 * MOST_AT_ONCE):
        cost = cost_of([(offsets, None)])
        written = offsets // MOST_AT_ONCE * len(empty_batch(0, MOST_AT_ONCE, producer=7, at_ms=5))
        assert (cost.offsets, cost.bytes) == (offsets, written)
    assert cost_of([(1_500_000, None), (1_500_001, None)]).seconds == 4


@pytest.mark.parametrize("limit", [2_000, 10_000, 100_000, 1_048_588])
def test_the_cost_reckons_with_the_batches_that_the_topic_takes(limit: int) -> None:
    offsets, most = 1_000_000, at_once(limit)
    full, rest = divmod(offsets, most)
    written = full * len(empty_batch(0, most, producer=7, at_ms=5))
    written += len(empty_batch(0, rest, producer=7, at_ms=5)) if rest else 0
    cost = cost_of([(offsets, limit)])
    assert abs(cost.bytes - written) <= written / 100
    assert cost.seconds >= (full + bool(rest)) // BATCH_RATE
