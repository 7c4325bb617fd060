"""The sink's writer over scripted brokers: requests in flight, partitions that join late, rows that are others."""

from __future__ import annotations

import pytest

from ferry.errors import Refused, Retryable, Superseded
from ferry.features.sink.acts.slot import IN_FLIGHT
from ferry.kafka.connect import codes
from ferry.model import TopicPartition
from tests.pure.scripted.delivery import TOPIC, Frame, batch_of
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.wire import scripted
from tests.said import data_of

WIDE = 1 << 20


@pytest.mark.parametrize("version", [1, 2])
def test_a_frame_is_written_once_and_another_attempt_writes_nothing(version: int) -> None:
    frame = Frame((5, 3), version=version)
    with scripted(frame.brokers) as (_, (cluster,)):
        assert not frame.deliver(cluster).already
        before = frame.brokers.counts
        assert frame.is_whole()
        assert frame.deliver(cluster).already
        assert frame.is_whole()
        assert frame.brokers.counts["Produce"] > before["Produce"], "the attempt's own records"


def test_five_requests_are_in_flight_and_no_more() -> None:
    frame = Frame((40,))
    with scripted(frame.brokers) as (_, (cluster,)):
        delivering = frame.open(cluster)
        delivering.settle(frame.due)
        frame.brokers.most_under_way = 0
        frame.brokers.faults.append(Fault(api="Produce", topic=TOPIC, late_s=0.1, skip=1, times=100))
        (receipt,) = frame.write(cluster, delivering.slot_specs()[0], chunk_bytes=WIDE)
        assert (receipt.done, receipt.first, receipt.last) == (next(iter(frame.due.values())), 0, 39)
    assert frame.brokers.most_under_way == IN_FLIGHT == 5
    assert frame.is_whole()


@pytest.mark.parametrize("skip", [1, 2, 3])
@pytest.mark.parametrize("applied", [False, True])
def test_a_later_batch_whose_partition_cannot_join_yet_is_sent_again_with_those_after_it(
    skip: int, applied: bool
) -> None:
    frame = Frame((20, 6))
    with scripted(frame.brokers) as (_, (cluster,)):
        delivering = frame.open(cluster)
        delivering.settle(frame.due)
        fault = Fault(
            api="Produce", topic=TOPIC, code=codes.CONCURRENT_TRANSACTIONS, skip=skip, late_s=0.1, applied=applied
        )
        frame.brokers.faults.append(fault)
        try:
            frame.write(cluster, delivering.slot_specs()[0], chunk_bytes=WIDE)
        except Retryable:
            assert applied, "brokers that took the batch do not say so: the next attempt writes all"
            assert not frame.written(0)
            frame.deliver(cluster)
        assert fault.happened
    assert frame.is_whole()


@pytest.mark.parametrize("skip", [0, 1, 4])
def test_partitions_of_several_brokers_that_join_at_the_same_time_are_no_failure(skip: int) -> None:
    """A broker that asks the coordinator to let a partition join may find that another one is joining."""
    frame = Frame((4,) * 6, nodes=(1, 2, 3))
    frame.brokers.settings["min.insync.replicas"] = "2"
    for number in range(6):
        frame.brokers.move_leader(TopicPartition(topic=TOPIC, partition=number), 1 + number % 3)
    with scripted(frame.brokers) as (_, (cluster,)):
        delivering = frame.open(cluster)
        delivering.settle(frame.due)
        fault = Fault(api="Produce", topic=TOPIC, code=codes.CONCURRENT_TRANSACTIONS, skip=skip, times=3, late_s=0.1)
        frame.brokers.faults.append(fault)
        frame.write(cluster, delivering.slot_specs()[0], chunk_bytes=WIDE)
        assert fault.happened == 3
    assert frame.is_whole()


def test_a_transaction_ends_at_its_time_limit() -> None:
    frame = Frame((20,))
    with scripted(frame.brokers) as (_, (cluster,)):
        delivering = frame.open(cluster)
        delivering.settle(frame.due)
        spec = delivering.slot_specs()[0]
        before = frame.brokers.count("EndTxn")
        frame.brokers.faults.append(Fault(api="Produce", topic=TOPIC, late_s=spec.chunk_seconds + 1))
        frame.write(cluster, spec, chunk_bytes=WIDE)
        assert frame.brokers.count("EndTxn") - before == 2
    assert frame.is_whole()


def test_a_commit_without_an_answer_that_was_not_made_leaves_no_transaction_open() -> None:
    frame = Frame((4,))
    with scripted(frame.brokers) as (_, (cluster,)):
        delivering = frame.open(cluster)
        delivering.settle(frame.due)
        frame.brokers.faults.append(Fault(api="EndTxn", lost=True))
        with pytest.raises(Retryable):
            frame.write(cluster, delivering.slot_specs()[0])
        assert frame.brokers.target.open_transactions() == []
        assert frame.written(0) == []


def test_rows_that_are_others_than_settled_are_not_committed() -> None:
    frame = Frame((4,))
    with scripted(frame.brokers) as (_, (cluster,)):
        delivering = frame.open(cluster)
        delivering.settle(frame.due)
        frame.rows = lambda length=2: iter([batch_of([(0, 0), (0, 1), (0, 2), (0, 9)])])  # type: ignore[method-assign]
        with pytest.raises(Refused):
            frame.write(cluster, delivering.slot_specs()[0], chunk_bytes=WIDE)
        assert frame.written(0) == []


def test_a_slot_of_an_older_attempt_writes_nothing() -> None:
    frame = Frame((4,))
    with scripted(frame.brokers) as (_, (cluster,)):
        older = frame.open(cluster)
        older.settle(frame.due)
        frame.deliver(cluster)
        with pytest.raises(Superseded) as caught:
            frame.write(cluster, older.slot_specs()[0])
        assert data_of(caught.value)[0] == "superseded.delivery"
    assert frame.is_whole()
