"""The real slot of identical offsets over scripted brokers: copies, crashes, two writers, zombies, damage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ferry.clock import wall_ms
from ferry.copy.kafka_slot import KafkaSlot
from ferry.errors import Refused, Retryable, Superseded
from ferry.features.identical.acts import data_writer
from ferry.features.identical.acts.data_writer import Lease, Reading, Readings
from ferry.features.identical.acts.slot import IdenticalSlot
from ferry.features.identical.rules.planned import (
    BROKER_SETTINGS,
    LEASE_MS,
    Found,
    TargetTopicFound,
)
from ferry.kafka.connect import codes
from ferry.ledger.receipts import last_receipts, receipts
from ferry.model import Record, RefusalKind, Segment, TopicPartition
from ferry.protocol.names import ledger_topic
from ferry.registry import imported
from ferry.run.micro_run import slot_port
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.protocol.world import FLOW, LANE, TOPIC
from tests.pure.scripted.batches import GONE, row
from tests.pure.scripted.broker import Brokers
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.lane import Lane, at_work, place
from tests.pure.scripted.wire import scripted

DAY = 24 * 60 * 60 * 1000
SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": str(7 * DAY),
    "retention.bytes": "-1",
    "unclean.leader.election.enable": "false",
    "min.insync.replicas": "2",
    "message.timestamp.type": "CreateTime",
}
BROKER = dict(zip(BROKER_SETTINGS, (str(DAY), "600000"), strict=True))


def found(**changes: Any) -> Found:
    """A target that keeps what it acknowledged."""
    topic = TargetTopicFound(settings=SETTINGS, in_sync=dict.fromkeys(range(8), 3))
    return Found(
        **{
            "may_lose": False,
            "brokers": {1: BROKER},
            "topics": {TOPIC: topic},
            "receipts": {},
            **changes,
        }
    )


class Identical(Lane):
    """A lane whose records keep their offsets; the source's are of now."""

    def __init__(self, partitions: Sequence[Sequence[int]], *, version: int = 2, nodes: tuple[int, ...] = (1,)) -> None:
        self.at_ms = wall_ms()
        super().__init__(partitions, version=version, nodes=nodes)
        self.port = IdenticalSlot
        self.found = found()

    def produce(self, partition: int, records: int) -> None:
        """A batch at the source."""
        base = self.source.log(TOPIC, partition).end
        rows = [Record(key=b"%d" % partition, value=b"%d" % (base + at)) for at in range(records)]
        self.source.append(TOPIC, build_batch(rows, self.at_ms, ProducerIdentity()), partition)

    def is_identical(self) -> bool:
        """Whether both logs hold the same records at the same offsets, and the target's holds nothing else."""
        return all(self.same_up_to(number) == self.source.log(TOPIC, number).end for number in range(len(self.sizes)))

    def same_up_to(self, partition: int = 0) -> int:
        """Up to where the target has the source's records at their offsets; fails if anything else is there."""
        there = values_of(self.target, partition)
        assert there == list(range(len(there))), "a record has another offset than at the source"
        return len(there)


def values_of(brokers: Brokers, partition: int) -> list[int]:
    """The source offsets of all entries of a log, in order of their own offsets."""
    return [int(row(entry.payload)[2] or b"") for entry in brokers.log(TOPIC, partition).entries]


def test_each_record_gets_its_offset_and_the_receipts_say_so() -> None:
    lane = Identical([[3, 2], [4]])
    with at_work(lane):
        result = lane.copy(lane.begin(lane.open("r")))
        assert lane.is_identical()
        lasts = last_receipts(lane.view(), LANE)
        assert {one.target: (one.start, one.end, one.target_next, one.identical) for one in lasts.values()} == {
            place(0): (0, 5, 5, True),
            place(1): (0, 4, 4, True),
        }
        assert lasts[place(0)].segments == (Segment(source_start=0, target_start=0, count=5),)
        assert (result.refusals, result.retries) == ({}, 0)


def test_the_next_run_continues_at_the_end_without_a_marker_in_between() -> None:
    lane = Identical([[3]])
    with at_work(lane):
        lane.copy(lane.begin(lane.open("first")))
        lane.produce(0, 2)
        lane.copy(lane.begin(lane.open("second")))
        assert lane.is_identical()
        assert lane.ends() == {place(): 5}


def test_a_small_chunk_after_the_other_needs_no_marker() -> None:
    lane = Identical([[2, 1, 3, 1]])
    with at_work(lane):
        result = lane.copy(lane.begin(lane.open("r")), chunk_bytes=1)
        assert (lane.is_identical(), len(result.receipts)) == (True, 4)


def test_a_request_is_sent_when_all_others_are_answered() -> None:
    lane = Identical([[1] * 6, [1] * 6])
    with at_work(lane):
        lane.copy(lane.begin(lane.open("r")), request_bytes=1)
        assert lane.is_identical()
        assert lane.target.most_under_way == 1


@pytest.mark.slow
@pytest.mark.parametrize("skip", range(4))
def test_a_lost_answer_is_found_in_the_log_and_nothing_is_doubled(skip: int) -> None:
    lane = Identical([[1, 2, 1, 3]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, applied=True, lost=True, skip=skip))
        result = lane.copy(attempt)
        assert (lane.is_identical(), result.retries, result.refusals) == (True, 1, {})
        assert lane.ends() == {place(): 7}


@pytest.mark.slow
def test_records_without_a_receipt_get_one_after_a_crash() -> None:
    lane = Identical([[2, 1, 3]])
    with at_work(lane):
        attempt = lane.begin(lane.open("first"))
        lane.target.faults.append(Fault(api="TxnOffsetCommit", code=codes.GROUP_AUTHORIZATION_FAILED))
        with pytest.raises(Refused):
            lane.copy(attempt)
        assert (lane.same_up_to(), lane.ends()) == (6, {})
        lane.copy(lane.begin(lane.open("second")))
        assert lane.is_identical()
        (receipt,) = receipts(lane.view(), lane=LANE)
        assert (receipt.start, receipt.end, receipt.records, receipt.batches) == (0, 6, 6, 3)
        assert receipt.segments == (Segment(source_start=0, target_start=0, count=6),)


@pytest.mark.slow
def test_a_receipt_of_found_records_has_the_digest_that_their_writer_would_have_given() -> None:
    plain, crashed = Identical([[2, 1]]), Identical([[2, 1]])
    with at_work(plain):
        plain.copy(plain.begin(plain.open("r")))
        (written,) = receipts(plain.view(), lane=LANE)
    with at_work(crashed):
        attempt = crashed.begin(crashed.open("first"))
        crashed.target.faults.append(Fault(api="TxnOffsetCommit", code=codes.GROUP_AUTHORIZATION_FAILED))
        with pytest.raises(Refused):
            crashed.copy(attempt)
        crashed.copy(crashed.begin(crashed.open("second")))
        (rebuilt,) = receipts(crashed.view(), lane=LANE)
    assert rebuilt.digest == written.digest
    assert (rebuilt.bytes, rebuilt.records, rebuilt.batches) == (written.bytes, written.records, written.batches)


def test_a_run_that_was_overtaken_writes_nothing_more() -> None:
    lane = Identical([[1, 1, 1]])
    with at_work(lane):
        first = lane.begin(lane.open("first"))
        lane.copy(lane.begin(lane.open("second")))
        before = lane.target.count("Produce")
        with pytest.raises(Superseded):
            lane.copy(first)
        assert (lane.is_identical(), lane.target.count("Produce")) == (True, before)


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 3, 6])
def test_a_batch_that_is_late_changes_nothing_after_its_successor(most: int) -> None:
    """The first run's batch stays in the network; the second run copies all, in a batch of another size."""
    lane = Identical([[6]])
    with scripted(lane.source, lane.target, lane.target) as (_, (source, target, elsewhere)):
        lane.connect([source, target])
        target.loop.run(elsewhere.refresh, None)
        lane.most_records = most
        first = lane.begin(lane.open("first"))
        late = Fault(api="Produce", topic=TOPIC, held=True)
        lane.target.faults.append(late)
        lane.start(first, target=elsewhere)
        lane.run_until(lambda: late.happened > 0)
        lane.most_records = None
        lane.copy(lane.begin(lane.open("second")))
        assert lane.is_identical()
        end = lane.target.log(TOPIC).end
        lane.target.release()
        assert (lane.target.log(TOPIC).end, lane.is_identical()) == (end, True)


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 3, 6])
def test_a_late_batch_that_lands_before_its_successors_is_taken_over(most: int) -> None:
    """The second run has read an empty log when the first run's batch arrives."""
    lane = Identical([[6]])
    with scripted(lane.source, lane.target, lane.target) as (_, (source, target, elsewhere)):
        lane.connect([source, target])
        target.loop.run(elsewhere.refresh, None)
        lane.most_records = most
        first = lane.begin(lane.open("first"))
        late = Fault(api="Produce", topic=TOPIC, held=True)
        lane.target.faults.append(late)
        lane.start(first, target=elsewhere)
        lane.run_until(lambda: late.happened > 0)
        lane.most_records = None
        second = lane.begin(lane.open("second"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, lost=True, then=lane.target.release))
        lane.copy(second)
        assert (lane.is_identical(), lane.ends()) == (True, {place(): 6})


@pytest.mark.slow
def test_a_foreign_record_at_the_end_refuses_the_partition_before_anything_is_written() -> None:
    lane = Identical([[2], [1]])
    with at_work(lane):
        lane.copy(lane.begin(lane.open("first")))
        lane.target.append(TOPIC, build_batch([Record(key=b"0", value=b"77")], lane.at_ms, ProducerIdentity()))
        lane.produce(0, 2)
        lane.produce(1, 1)
        attempt, before = lane.begin(lane.open("second")), lane.target.log(TOPIC).end
        result = lane.copy(attempt)
        (refusal,) = result.refusals.values()
        assert (refusal.code, refusal.kind) == ("identical.foreign", RefusalKind.FOREIGN_WRITER)
        assert (lane.target.log(TOPIC).end, lane.same_up_to(1)) == (before, 2)


def test_a_foreign_record_while_a_slot_writes_is_found_after_one_batch() -> None:
    lane = Identical([[2, 2, 2]])
    stranger = build_batch([Record(key=b"0", value=b"77")], lane.at_ms, ProducerIdentity())
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, then=lambda: lane.target.append(TOPIC, stranger)))
        result = lane.copy(attempt, request_bytes=1)
        assert {one.code for one in result.refusals.values()} <= {"identical.shifted", "identical.foreign"}
        assert len(result.refusals) == 1
        assert len(values_of(lane.target, 0)) <= 5
        again = lane.copy(lane.begin(lane.open("second")))
        assert {one.code for one in again.refusals.values()} == {"identical.foreign"}
        assert lane.ends() == {}


def test_other_records_under_the_own_producer_id_are_not_taken_for_the_sources() -> None:
    lane = Identical([[2]])
    with at_work(lane):
        plan = lane.open("first")
        producer = plan.slices[0].producer
        assert producer is not None
        identity = ProducerIdentity(producer_id=producer, producer_epoch=0, sequence=0)
        lane.target.append(TOPIC, build_batch([Record(key=b"0", value=b"9")], lane.at_ms, identity))
        result = lane.copy(lane.begin(lane.open("second")))
        assert {one.code for one in result.refusals.values()} == {"identical.differs"}
        assert lane.ends() == {}


def test_a_hole_ends_the_partition_there_and_what_is_before_it_is_copied() -> None:
    lane = Identical([[3], [2]])
    lane.produce_aborted(0, 2)
    lane.produce(0, 2)
    with at_work(lane):
        result = lane.copy(lane.begin(lane.open("r")))
        (refusal,) = result.refusals.values()
        assert (refusal.code, refusal.partition, dict(refusal.facts)["at"]) == ("identical.hole", 0, 3)
        assert (lane.same_up_to(0), lane.same_up_to(1)) == (3, 2)
        assert lane.ends() == {place(0): 3, place(1): 2}


def test_a_record_that_is_gone_is_another_hole_than_an_aborted_one() -> None:
    lane = Identical([[2, 1, 2]])
    entries = lane.source.log(TOPIC).entries
    entries[2] = replace(entries[2], payload=GONE)
    lane.produce_aborted(0, 2)
    with at_work(lane):
        result = lane.copy(lane.begin(lane.open("r")))
        (refusal,) = result.refusals.values()
        assert (refusal.code, dict(refusal.facts)["at"], lane.same_up_to()) == ("identical.absent", 2, 2)


@pytest.mark.slow
def test_a_hole_at_the_end_is_no_part_of_the_copy() -> None:
    lane = Identical([[3]])
    lane.produce_aborted(0, 2)
    with at_work(lane):
        result = lane.copy(lane.begin(lane.open("r")))
        assert {one.code for one in result.refusals.values()} == {"identical.hole"}
        assert (lane.same_up_to(), lane.ends()) == (3, {place(): 3})


def test_a_batch_that_is_too_old_for_producer_state_is_not_sent() -> None:
    lane = Identical([[2]])
    lane.at_ms -= DAY
    lane.produce(0, 3)
    with at_work(lane):
        result = lane.copy(lane.begin(lane.open("r")))
        (refusal,) = result.refusals.values()
        assert (refusal.code, dict(refusal.facts)["at"], lane.same_up_to()) == ("identical.old", 2, 2)


def test_a_log_that_lost_acknowledged_records_is_refused() -> None:
    lane = Identical([[2, 2]])
    with at_work(lane):
        lane.copy(lane.begin(lane.open("first")))
        lane.produce(0, 1)
        attempt = lane.begin(lane.open("second"))
        del lane.target.log(TOPIC).entries[3:]
        result = lane.copy(attempt)
        assert {one.code for one in result.refusals.values()} <= {"identical.lost", "target.cut.at-work"}
        assert len(result.refusals) == 1
        assert lane.target.log(TOPIC).end == 3


@pytest.mark.slow
def test_the_next_run_writes_after_the_producer_state_expired() -> None:
    lane = Identical([[2]])
    with at_work(lane):
        lane.copy(lane.begin(lane.open("first")))
        lane.target.expire()
        lane.produce(0, 2)
        lane.copy(lane.begin(lane.open("second")))
        assert lane.is_identical()


@pytest.mark.slow
@pytest.mark.parametrize("code", [3, 6, 7, 19, 20, 45, 46, 56])
@pytest.mark.parametrize("applied", [True, False])
def test_every_answer_is_followed_by_a_look(code: int, applied: bool) -> None:
    lane = Identical([[1, 2, 1]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, code=code, applied=applied, skip=1))
        result = lane.copy(attempt)
        assert (lane.is_identical(), result.refusals) == (True, {})


def test_the_lease_ends_for_a_process_that_slept() -> None:
    now = [0]
    looks: list[int] = []

    async def look() -> None:
        looks.append(now[0])

    lease = Lease(look, lambda: now[0])
    with pytest.raises(Retryable):
        lease.check()
    _run(lease.keep())
    lease.check()
    now[0] = LEASE_MS // 2 - 1
    _run(lease.keep())
    assert looks == [0]
    now[0] = LEASE_MS
    with pytest.raises(Retryable):
        lease.check()
    _run(lease.keep())
    lease.check()
    assert looks == [0, LEASE_MS]


def test_a_process_that_slept_sends_nothing_by_what_it_read_before() -> None:
    now = [0]
    read: list[set[TopicPartition]] = []

    async def again(old: Mapping[TopicPartition, Reading]) -> Mapping[TopicPartition, Reading]:
        read.append(set(old))
        return {where: replace(one, at=now[0]) for where, one in old.items()}

    readings = Readings(again, lambda: now[0])
    with pytest.raises(Retryable):
        readings.check(1, [place(0)])
    readings.note({place(0): Reading(end=3, at=0, node=1)})
    readings.check(1, [place(0)])
    with pytest.raises(Retryable):
        readings.check(2, [place(0)])
    now[0] = LEASE_MS - 1
    readings.check(1, [place(0)])
    now[0] = LEASE_MS
    with pytest.raises(Retryable):
        readings.check(1, [place(0)])
    _run(readings.keep([place(0)]))
    readings.check(1, [place(0)])
    now[0] += LEASE_MS // 2 - 1
    _run(readings.keep([place(0)]))
    assert read == [{place(0)}]


@pytest.mark.parametrize("without", [None, Readings, Lease], ids=["both", "the lease alone", "the readings alone"])
def test_a_lease_that_is_over_at_once_lets_nothing_be_sent(
    without: type | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at the clock is a lease after the one before, as for a process that sleeps before each request."""
    lane = Identical([[2, 2]])
    with at_work(lane):
        attempt = lane.begin(lane.open("first"))
        monkeypatch.setattr(data_writer, "LEASE_MS", 0)
        if without is not None:
            monkeypatch.setattr(without, "check", lambda *_: None)
        with pytest.raises(Retryable):
            lane.copy(attempt)
        assert lane.target.log(TOPIC).end == 0
        monkeypatch.undo()
        lane.copy(lane.begin(lane.open("second")))
        assert lane.is_identical()


def translated(lane: Identical) -> None:
    """The file asks for translated offsets from now on."""
    lane.port, lane.found = KafkaSlot, None


@pytest.mark.slow
def test_a_partition_that_never_got_a_batch_is_free_to_be_translated_and_one_that_did_is_not() -> None:
    lane = Identical([[], [2]])
    lane.at_ms -= DAY
    lane.produce(0, 3)
    with at_work(lane):
        first = lane.copy(lane.begin(lane.open("first")))
        assert [one.code for one in first.refusals.values()] == ["identical.old"]
        lane.produce(1, 2)
        translated(lane)
        plan = lane.open("second")
        assert [(one.code, one.partition) for one in plan.refusals] == [("identical.stays", 1)]
        lane.copy(lane.begin(plan))
        assert (lane.copied(0), lane.same_up_to(1)) == ([0, 1, 2], 2)
        assert lane.ends() == {place(0): 3, place(1): 2}


@pytest.mark.slow
def test_a_partition_whose_first_batch_is_late_is_not_translated() -> None:
    lane = Identical([[2], []])
    with scripted(lane.source, lane.target, lane.target) as (_, (source, target, elsewhere)):
        lane.connect([source, target])
        target.loop.run(elsewhere.refresh, None)
        late = Fault(api="Produce", topic=TOPIC, held=True)
        lane.target.faults.append(late)
        lane.start(lane.begin(lane.open("first")), target=elsewhere)
        lane.run_until(lambda: late.happened > 0)
        lane.produce(1, 1)
        translated(lane)
        plan = lane.open("second")
        assert [(one.code, one.partition) for one in plan.refusals] == [("identical.stays", 0)]
        lane.copy(lane.begin(plan))
        lane.target.release()
        assert (lane.same_up_to(0), lane.copied(1)) == (2, [0])


def test_a_run_that_was_overtaken_before_its_first_batch_sends_none() -> None:
    """The ledger gets what it says of the first batch after the second run has read it."""
    lane = Identical([[2]])
    ledger = ledger_topic(FLOW.source)
    with scripted(lane.source, lane.target, lane.target) as (_, (source, target, elsewhere)):
        lane.connect([source, target])
        target.loop.run(elsewhere.refresh, None)
        first = lane.begin(lane.open("first"))
        late = Fault(api="Produce", topic=ledger, held=True)
        lane.target.faults.append(late)
        slept = lane.start(first, target=elsewhere)
        lane.run_until(lambda: late.happened > 0)
        translated(lane)
        lane.copy(lane.begin(lane.open("second")))
        lane.target.release()
        lane.run_until(lambda: slept.is_done)
        assert isinstance(slept.exception, Superseded)
        assert lane.copied(0) == [0, 1]


def test_the_spec_of_a_slot_names_the_port_wherever_it_runs() -> None:
    lane = Identical([[2], [1]])
    with at_work(lane):
        plan = lane.open("first")
        ports = {slot_port(plan, slot) for slot in plan.used_slots}
        assert [imported(place) for place in ports] == [IdenticalSlot]
        assert slot_port(replace(plan, slices=()), 0) == ""


def _run(work: Any) -> None:
    with pytest.raises(StopIteration):
        work.send(None)
