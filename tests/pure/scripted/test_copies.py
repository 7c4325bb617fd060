"""What a copy leaves on the target, and says of it, where logs have holes, ends, strangers and cuts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.copy.chunk import PartProgress
from ferry.errors import Refused, Retryable, Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.driver_port import KafkaDriver
from ferry.kafka.fetch.requests import READ_COMMITTED
from ferry.kafka.produce import writer
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.ledger.ledger import UNREAD
from ferry.model import Flow, Origin, Record, RefusalKind, Segment
from ferry.protocol.names import DRIVER, ledger_topic, position_group, transactional_id
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.protocol.world import FLOW, LANE, TOPIC
from tests.pure.scripted.faults import Asked, Fault
from tests.pure.scripted.lane import TIMEOUT_MS, Lane, at_work, place

LEDGER = ledger_topic(FLOW.source)
STRANGER = build_batch([Record(key=b"0", value=b"77")], 0, ProducerIdentity())
both_versions = pytest.mark.parametrize("version", [1, 2])


def test_aborted_records_and_markers_are_holes_in_the_map_and_not_missing() -> None:
    lane = Lane([[3]])
    lane.produce_aborted(0, 2)
    lane.produce(0, 2)
    with at_work(lane):
        (receipt,) = lane.copy(lane.begin(lane.open("r"))).receipts
    assert lane.copied(0) == [0, 1, 2, 6, 7]
    assert (receipt.start, receipt.end, receipt.records, receipt.missing) == (0, 8, 5, 0)
    assert (receipt.aborted_batches, receipt.control_batches) == (1, 1)
    assert receipt.segments == (
        Segment(source_start=0, target_start=0, count=3),
        Segment(source_start=6, target_start=3, count=2),
    )


@pytest.mark.parametrize("most", [1, 2, 4, 5])
def test_a_run_that_ends_inside_a_batch_leaves_the_rest_to_the_next(most: int) -> None:
    lane = Lane([[3, 3]])
    with at_work(lane):
        lane.most_records = most
        (first,) = lane.copy(lane.begin(lane.open("first"))).receipts
        assert (first.end, lane.copied(0)) == (most, list(range(most)))
        lane.most_records = None
        result = lane.copy(lane.begin(lane.open("second")))
        assert (sum(one.records for one in result.receipts), lane.is_whole()) == (6 - most, True)


def test_a_run_that_ends_inside_an_aborted_batch_ends_there() -> None:
    lane = Lane([[3]])
    lane.produce_aborted(0, 4)
    lane.produce(0, 2)
    with at_work(lane):
        lane.most_records = 5
        (first,) = lane.copy(lane.begin(lane.open("first"))).receipts
        assert (first.end, first.records, first.missing) == (5, 3, 0)
        lane.most_records = None
        lane.copy(lane.begin(lane.open("second")))
        assert lane.copied(0) == [0, 1, 2, 8, 9]


@pytest.mark.parametrize("skip", [0, 1, 2])
def test_a_ledger_that_is_deleted_while_a_slot_works_ends_it_and_its_transaction(skip: int) -> None:
    lane = Lane([[3], [2]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        gone = codes.UNKNOWN_TOPIC_OR_PARTITION
        lane.target.faults.append(
            Fault(api="Fetch", topic=LEDGER, code=gone, times=9999, skip=skip, then=lambda: lane.target.unaware.add(1))
        )
        with pytest.raises(Unreachable, match=LEDGER):
            lane.copy(attempt)
        assert lane.target.target.open_transactions() == []
        assert [lane.copied(0), lane.copied(1)] == [[], []]


def test_a_topic_that_leaves_the_metadata_while_its_answer_is_under_way_is_asked_for_again() -> None:
    lane = Lane([[3], [2]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        forgotten = Fault(api="Produce", topic=TOPIC, then=lambda: lane.clusters[1].topics.pop(TOPIC))
        lane.target.faults.append(forgotten)
        result = lane.copy(attempt)
        assert (forgotten.happened, result.retries, result.refusals, lane.is_whole()) == (1, 1, {}, True)


def test_a_stranger_between_two_batches_refuses_the_partition() -> None:
    lane = Lane([[2, 2], [1]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, then=lambda: lane.target.append(TOPIC, STRANGER)))
        result = lane.copy(attempt, request_bytes=1)
        assert {one: refusal.kind for one, refusal in result.refusals.items()} == {place(): RefusalKind.FOREIGN_WRITER}
        assert (lane.copied(0), lane.copied(1)) == ([77], [0])


def up_to_stable(asked: Asked) -> bool:
    """Whether the last stable offsets are asked for."""
    return bool(asked.request.isolation_level == READ_COMMITTED)


LOOKS = {
    "stable": Fault(api="ListOffsets", topic=TOPIC, only=up_to_stable),
    "ends": Fault(api="ListOffsets", topic=TOPIC, only=lambda asked: not up_to_stable(asked)),
    "records": Fault(api="Fetch", topic=TOPIC),
}
"""What shows a copy that another producer has written since the plan."""


@pytest.mark.parametrize(
    "code", [codes.TOPIC_AUTHORIZATION_FAILED, pytest.param(codes.KAFKA_STORAGE_ERROR, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("look", LOOKS)
def test_a_target_that_cannot_be_checked_is_not_written(look: str, code: int) -> None:
    """A stranger has written there since the plan."""
    lane = Lane([[2, 2]])
    with at_work(lane):
        lane.most_records = 2
        lane.copy(lane.begin(lane.open("first")))
        lane.most_records = None
        attempt = lane.begin(lane.open("second"))
        lane.target.append(TOPIC, STRANGER)
        lane.clusters[1].patience_s = 1
        lane.target.faults.append(replace(LOOKS[look], code=code, times=10_000))
        result = lane.copy(attempt)
        assert {one: refusal.code for one, refusal in result.refusals.items()} == {place(): "target.unseen"}
        assert lane.copied(0) == [0, 1, 77]


@pytest.mark.parametrize("look", LOOKS)
def test_a_target_that_is_checked_after_a_while_has_its_stranger(look: str) -> None:
    lane = Lane([[2, 2]])
    with at_work(lane):
        lane.most_records = 2
        lane.copy(lane.begin(lane.open("first")))
        lane.most_records = None
        attempt = lane.begin(lane.open("second"))
        lane.target.append(TOPIC, STRANGER)
        lane.target.faults.append(replace(LOOKS[look], code=codes.KAFKA_STORAGE_ERROR, times=2))
        result = lane.copy(attempt)
        assert {one: refusal.code for one, refusal in result.refusals.items()} == {place(): "foreign.since-plan"}
        assert (result.retries, lane.copied(0)) == (0, [0, 1, 77])


def test_what_lies_before_a_batch_that_the_target_refuses_is_copied() -> None:
    lane = Lane([[3, 2, 2]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, code=codes.MESSAGE_TOO_LARGE, skip=1))
        result = lane.copy(attempt, request_bytes=1)
        assert {one: refusal.kind for one, refusal in result.refusals.items()} == {place(): RefusalKind.TOO_LARGE}
        assert (lane.copied(0), lane.ends()) == ([0, 1, 2], {place(): 3})


@both_versions
def test_what_passes_costs_a_retry_and_refuses_nothing(version: int) -> None:
    lane = Lane([[3, 2]], version=version)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, code=codes.NOT_ENOUGH_REPLICAS))
        result = lane.copy(attempt)
        assert (result.retries, result.refusals, lane.is_whole()) == (1, {}, True)


def test_partitions_with_too_large_records_are_left_out_at_once_where_the_limit_is_not_known() -> None:
    lane = Lane([[2], [3]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults += [
            Fault(api="DescribeConfigs", code=codes.TOPIC_AUTHORIZATION_FAILED, times=99),
            Fault(api="Produce", topic=TOPIC, code=codes.MESSAGE_TOO_LARGE, times=2),
        ]
        result = lane.copy(attempt)
        refused = {one: (refusal.kind, refusal.code) for one, refusal in result.refusals.items()}
        assert refused == dict.fromkeys([place(0), place(1)], (RefusalKind.TOO_LARGE, "batch.too-large"))
        assert (result.retries, lane.copied(0), lane.copied(1)) == (0, [], [])
        lane.target.faults.clear()
        lane.copy(lane.begin(lane.open("again")))
        assert lane.is_whole()


def test_failures_with_commits_between_do_not_add_up() -> None:
    lane = Lane([[1] * 12])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        for at in range(12):  # the first try of each chunk
            lane.target.faults.append(Fault(api="Produce", topic=TOPIC, code=codes.NOT_LEADER_OR_FOLLOWER, skip=at))
        result = lane.copy(attempt, chunk_bytes=1)
        assert result.retries > 8
        assert lane.is_whole()


@both_versions
def test_batches_after_one_that_could_not_join_are_sent_again_without_a_retry(version: int) -> None:
    lane = Lane([[1] * 8], version=version)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults += [
            Fault(api="Produce", topic=TOPIC, code=codes.CONCURRENT_TRANSACTIONS, skip=2),
            Fault(api="Produce", topic=TOPIC, late_s=0.05, times=100),
        ]
        result = lane.copy(attempt, request_bytes=1)
        assert (result.retries, lane.is_whole()) == (0, True)


@both_versions
@pytest.mark.parametrize("at", [0, 1, 4])
def test_partitions_of_several_brokers_that_join_at_the_same_time_are_no_failure(version: int, at: int) -> None:
    """A broker that asks the coordinator to let a partition join may find that another one is joining."""
    lane = Lane([[1] * 4] * 6, version=version, nodes=(1, 2, 3))
    for number in range(6):
        lane.target.move_leader(place(number), 1 + number % 3)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        fault = Fault(api="Produce", topic=TOPIC, code=codes.CONCURRENT_TRANSACTIONS, skip=at, times=3)
        lane.target.faults += [fault, Fault(api="Produce", topic=TOPIC, late_s=0.05, times=100)]
        result = lane.copy(attempt, request_bytes=1, chunk_bytes=300)
        assert fault.happened == 3
        assert (result.retries, result.refusals, lane.is_whole()) == (0, {}, True)


@both_versions
def test_receipts_follow_each_other_and_say_where_each_record_lies(version: int) -> None:
    lane = Lane([[1] * 8], version=version)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, late_s=0.05, times=100))
        receipts = lane.copy(attempt, request_bytes=1, chunk_bytes=300).receipts
        assert len(receipts) > 1
        assert [one.start for one in receipts] == [0, *(one.end for one in receipts[:-1])]
        assert [sum(part.count for part in one.segments) for one in receipts] == [one.records for one in receipts]
        assert receipts[-1].end == sum(one.records for one in receipts) == 8


@both_versions
def test_a_slot_that_goes_on_does_not_take_its_own_records_for_a_stranger_s(version: int) -> None:
    lane = Lane([[2, 2, 2]], version=version)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, code=codes.NOT_LEADER_OR_FOLLOWER, skip=1))
        result = lane.copy(attempt, chunk_bytes=1)
        assert (result.retries, result.refusals, lane.is_whole()) == (1, {}, True)


def test_what_is_written_waits_for_all_replicas_in_sync() -> None:
    lane = Lane([[3]])
    with at_work(lane):
        lane.copy(lane.begin(lane.open("r")))
        asked = [one.request.acks for one in lane.target.asked if one.api == "Produce"]
        assert set(asked) == {-1}


def test_a_ledger_append_without_an_answer_is_written_once() -> None:
    lane = Lane([[1]])
    with at_work(lane):
        cluster = lane.clusters[1]
        ledger = LedgerTopic(cluster, FLOW.source)
        lane.target.faults.append(Fault(api="Produce", topic=LEDGER, lost=True, applied=True))
        last = cluster.loop.run(ledger.append, [Record(key=b'["x"]', value=b"{}")])
        records, end = cluster.loop.run(ledger.read)
        assert ([one.offset for one in records], end) == ([last], last + 1)


def test_a_ledger_append_follows_the_leader() -> None:
    lane = Lane([[1]], nodes=(1, 2))
    with at_work(lane):
        cluster = lane.clusters[1]
        ledger = LedgerTopic(cluster, FLOW.source)
        lane.target.move_leader(ledger.place, 2)
        assert cluster.loop.run(ledger.append, [Record(key=b'["x"]', value=b"{}")]) == 0


def test_a_run_is_not_opened_in_a_ledger_that_ends_before_what_was_read_of_it() -> None:
    lane = Lane([[1]])
    with at_work(lane):
        cluster = lane.clusters[1]
        known = replace(UNREAD, end=1_000)
        with pytest.raises(Retryable):
            cluster.loop.run(lane.opening("r", 1, cluster, known))
        assert lane.target.count("EndTxn") == 0, "nothing is decided"
        cluster.loop.run(lane.opening("again", 1, cluster, lane.view()))


def test_a_fence_is_for_the_writers_of_earlier_names_of_the_flow_too() -> None:
    lane = Lane([[1]])
    earlier = Flow(source="old", target=FLOW.target)
    with at_work(lane):
        cluster = lane.clusters[1]
        port = KafkaDriver(LedgerTopic(cluster, FLOW.source), FLOW, LANE, TIMEOUT_MS)
        cluster.loop.run(port.fence, 2, [FLOW, earlier])
        fenced = [one.request.transactional_id for one in lane.target.asked if one.api == "InitProducerId"]
        wanted: list[tuple[Flow, int | str]] = [
            (FLOW, 0),
            (FLOW, 1),
            (earlier, 0),
            (earlier, 1),
            (earlier, DRIVER),
        ]
        assert sorted(fenced) == sorted(transactional_id(flow, LANE, name) for flow, name in wanted)


def test_each_partition_has_its_position_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "POSITIONS_PER_REQUEST", 2)
    lane = Lane([[1]] * 5)
    with at_work(lane):
        lane.copy(lane.begin(lane.open("r")))
        asked = [one.request for one in lane.target.asked if one.api == "TxnOffsetCommit"]
        positions = [
            (part.partition_index, part.committed_offset)
            for request in asked
            for topic in request.topics
            for part in topic.partitions
        ]
        assert (len(asked), positions) == (3, [(number, 1) for number in range(5)])


def test_a_target_that_was_cut_since_the_plan_is_not_written() -> None:
    """Another leader lacks records of ours, and a stranger has filled it up again: no offset shows it."""
    lane = Lane([[2, 2]], nodes=(1, 2))
    with at_work(lane):
        lane.most_records = 2
        lane.copy(lane.begin(lane.open("first")))
        lane.most_records = None
        attempt = lane.begin(lane.open("second"))
        end = lane.target.log(TOPIC).end
        lane.target.lose(place(), 1, 2)
        while lane.target.log(TOPIC).end < end:
            lane.target.append(TOPIC, STRANGER)
        result = lane.copy(attempt)
        assert {one: refusal.kind for one, refusal in result.refusals.items()} == {place(): RefusalKind.TARGET_CHANGED}
        assert (lane.target.log(TOPIC).end, lane.ends()) == (end, {place(): 2})


def test_a_chunk_whose_records_the_target_lost_is_written_again() -> None:
    lane = Lane([[3]], nodes=(1, 2))
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, then=lambda: lane.target.lose(place(), 1, 2)))
        result = lane.copy(attempt)
        assert (result.retries, lane.is_whole()) == (1, True)


def test_a_target_whose_leader_does_not_tell_of_its_log_is_not_written() -> None:
    lane = Lane([[2, 2], [1]], nodes=(1, 2))
    with at_work(lane):
        lane.most_records = 3
        lane.copy(lane.begin(lane.open("first")))
        lane.most_records = None
        attempt = lane.begin(lane.open("second"))
        lane.target.move_leader(place(), 2)
        lane.target.faults.append(Fault(api="OffsetForLeaderEpoch", code=codes.NOT_LEADER_OR_FOLLOWER, times=1000))
        result = lane.copy(attempt)
        assert {one: refusal.kind for one, refusal in result.refusals.items()} == {place(): RefusalKind.NO_LEADER}


@both_versions
@pytest.mark.parametrize("lost", [False, True])
def test_a_position_whose_coordinator_has_moved_is_sent_where_it_is_now(version: int, lost: bool) -> None:
    """A chunk is written again once, whether the broker says that it is not the coordinator, or is gone."""
    lane = Lane([[2, 2]], version=version, nodes=(1, 2))
    group = position_group(FLOW, LANE)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))

        def move() -> None:
            lane.target.coordinators[group] = 2

        after = Fault(api="TxnOffsetCommit", lost=True) if lost else Fault(api="Produce", topic=TOPIC, skip=1)
        lane.target.faults.append(replace(after, then=move))
        result = lane.copy(attempt, chunk_bytes=1)
        asked = [one.node for one in lane.target.asked if one.api == "TxnOffsetCommit"]
        assert (result.retries, lane.is_whole(), asked) == (1, True, [1, 2, 2] if lost else [1, 1, 2])


@both_versions
def test_a_writer_whose_coordinator_does_not_answer_asks_where_it_is(version: int) -> None:
    lane = Lane([[2, 2]], version=version, nodes=(1, 2))
    slot = transactional_id(FLOW, LANE, 0)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))

        def move() -> None:
            lane.target.coordinators[slot] = 2

        lane.target.faults.append(Fault(api="EndTxn", lost=True, then=move))
        lane.target.asked.clear()
        result = lane.copy(attempt)
        asked = [one.node for one in lane.target.asked if one.api in {"EndTxn", "InitProducerId"}]
        assert (result.retries, lane.is_whole()) == (1, True)
        assert (asked[:2], set(asked[2:])) == ([1, 1], {2})


@both_versions
def test_a_writer_that_leaves_ends_its_transaction_where_the_coordinator_is_now(version: int) -> None:
    lane = Lane([[2, 2]], version=version, nodes=(1, 2))
    slot = transactional_id(FLOW, LANE, 0)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))

        def move() -> None:
            lane.target.coordinators[slot] = 2

        lane.target.faults.append(
            Fault(api="TxnOffsetCommit", code=codes.GROUP_AUTHORIZATION_FAILED, applied=True, then=move)
        )
        with pytest.raises(Refused):
            lane.copy(attempt)
        assert lane.target.target.open_transactions() == []
        assert [one.node for one in lane.target.asked if one.api == "DescribeTransactions"] == [1, 2]


@pytest.mark.parametrize("end", [4, 1])
def test_a_source_s_new_leader_is_asked_for_its_log_before_it_is_read(end: int) -> None:
    """Another leader has all records, or lacks some that an earlier run copied."""
    lane = Lane([[2, 2]], nodes=(1, 2))
    with at_work(lane):
        lane.most_records = 2
        lane.copy(lane.begin(lane.open("first")))
        lane.most_records = None
        attempt = lane.begin(lane.open("second"))

        def move() -> None:
            lane.source.lose(place(), end, 2)
            if end < 4:
                lane.produce(0, 4 - end)

        lane.source.faults.append(Fault(api="Fetch", then=move, code=codes.NOT_LEADER_OR_FOLLOWER))
        result = lane.copy(attempt)
        wanted = {"OffsetForLeaderEpoch", "Fetch"}
        asked = [one.api for one in lane.source.asked if one.node == 2 and one.api in wanted]
        assert (asked[0], "Fetch" in asked, result.retries) == ("OffsetForLeaderEpoch", end == 4, 0)
        if end == 4:
            assert (result.refusals, lane.copied(0)) == ({}, [0, 1, 2, 3])
        else:
            assert {refusal.code for refusal in result.refusals.values()} == {"source.truncated.read"}
            assert lane.copied(0) == [0, 1]


def progress(lane: Lane, *, merged: bool = False) -> PartProgress:
    """A chunk of the first partition that has nothing yet."""
    with at_work(lane):
        plan = lane.open("r")
    piece = replace(plan.slices[0], merged=merged)
    return PartProgress(plan=plan, origin=Origin(), piece=piece, start=0, end=0, target_next=0)


def test_a_receipt_that_ends_with_a_hole_has_the_epoch_of_the_log_that_showed_it() -> None:
    part = progress(Lane([[3, 2]]))
    part.reached(5, 7)
    assert (part.receipt().end, part.receipt().source_epoch) == (5, 7)
    part.reached(4, 9)
    assert (part.receipt().end, part.receipt().source_epoch) == (5, 7)


def test_a_stranger_s_records_in_a_merged_topic_are_in_no_segment() -> None:
    part = progress(Lane([[3, 2]]), merged=True)
    assert part.written([(0, 2)], 0)
    assert part.written([(2, 3)], 4)
    assert part.receipt().segments == (
        Segment(source_start=0, target_start=0, count=2),
        Segment(source_start=2, target_start=4, count=3),
    )
