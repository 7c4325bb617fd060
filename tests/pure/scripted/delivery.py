"""A frame that the sink delivers to scripted brokers: the real attempt opens it, the real slot writes it, no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from ferry.config.record_target import record_target
from ferry.features.sink.acts.attempt import Attempt
from ferry.features.sink.acts.driver import Delivering
from ferry.features.sink.acts.ids import DeliverySpec, SlotSpec, delivery_ledger
from ferry.features.sink.acts.slot import DeliverySlot
from ferry.kafka.connect.cluster import Cluster
from ferry.model import TopicPartition
from ferry.model.delivery import DeliveryReceipt, Due, Written
from tests.pure.scripted.batches import row
from tests.pure.scripted.broker import Brokers

TOPIC, APPLICATION = "frames", "app"
DELIVERY_LEDGER = delivery_ledger(APPLICATION)
_HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
_STEP = 0x9E3779B97F4A7C15
"""Spreads the numbers of records over 64 bits, as digests are."""


def digest_of(partition: int, number: int) -> int:
    """The digest of a record of the frame."""
    return (partition * 1_000 + number + 1) * _STEP % (1 << 64)


class Frame:
    """A batch of so many records for each partition of the topic; a record's value is its number."""

    def __init__(self, counts: tuple[int, ...], *, version: int = 2, nodes: tuple[int, ...] = (1,)) -> None:
        """`version`: of transactions."""
        self.counts = counts
        self.brokers = Brokers(alias="t", version=version, nodes=nodes)
        self.brokers.settings = {
            "max.message.bytes": "1048588",
            "cleanup.policy": "compact",
            "unclean.leader.election.enable": "false",
            "min.insync.replicas": "1",
        }
        self.brokers.topic(TOPIC, len(counts))
        self.brokers.topic(DELIVERY_LEDGER, ledger=True)
        connection = record_target({"kafka.bootstrap.servers": "scripted:1"}).connection
        self.spec = DeliverySpec(alias="t", connection=connection, application=APPLICATION, batch=1, patience_s=20)

    @property
    def due(self) -> dict[TopicPartition, Due]:
        """What there is for each partition."""
        return {
            TopicPartition(topic=TOPIC, partition=partition): Due(
                count, sum(digest_of(partition, number) for number in range(count)) % (1 << 64)
            )
            for partition, count in enumerate(self.counts)
        }

    def rows(self, length: int = 2) -> Iterator[pa.RecordBatch]:
        """The rows as Spark hands them to the slot, in pieces of this many records."""
        rows = [(partition, number) for partition, count in enumerate(self.counts) for number in range(count)]
        for at in range(0, len(rows), length):
            yield batch_of(rows[at : at + length])

    def open(self, cluster: Cluster) -> Delivering:
        """Open an attempt and settle the batch."""
        self.attempt = attempt = Attempt(cluster, self.spec)
        found = cluster.loop.run(attempt.open, 1)
        shapes = cluster.loop.run(attempt.shapes, [TOPIC], found)
        return Delivering(cluster, self.spec, attempt, found, shapes, 1)

    def write(
        self, cluster: Cluster, spec: SlotSpec, *, chunk_bytes: int = 1, length: int = 2
    ) -> list[DeliveryReceipt]:
        """Write a slot, in transactions of this many bytes."""
        slot = DeliverySlot(cluster, replace(spec, chunk_bytes=chunk_bytes), self.rows(length))
        return cluster.loop.run(slot.write)  # type: ignore[no-any-return]

    def deliver(self, cluster: Cluster) -> Written:
        """A whole attempt."""
        delivering = self.open(cluster)
        done = delivering.settle(self.due)
        if done is not None:
            return done
        receipts: dict[TopicPartition, DeliveryReceipt] = {}
        for spec in delivering.slot_specs().values():
            receipts |= {one.place: one for one in self.write(cluster, spec)}
        return delivering.close(receipts)

    def written(self, partition: int) -> list[int]:
        """The numbers of the records that a read_committed consumer gets, in its order."""
        self.brokers.deliver_markers()
        return [int(row(payload)[2] or b"") for _, payload in self.brokers.log(TOPIC, partition).committed()]

    def offsets(self, partition: int) -> tuple[int, int]:
        """The target offsets of the first and the last record that a read_committed consumer gets."""
        found = [offset for offset, _ in self.brokers.log(TOPIC, partition).committed()]
        return found[0], found[-1]

    def is_whole(self) -> bool:
        """Whether each record is there once, in order."""
        return all(self.written(partition) == list(range(count)) for partition, count in enumerate(self.counts))


def batch_of(rows: list[tuple[int, int]]) -> pa.RecordBatch:
    """Rows with these partitions and numbers."""
    digests = [digest_of(*one) for one in rows]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([TOPIC] * len(rows), pa.string()),
            pa.array([partition for partition, _ in rows], pa.int32()),
            pa.array([1_000 + number for _, number in rows], pa.int64()),
            pa.array([b"k"] * len(rows), pa.binary()),
            pa.array([b"%d" % number for _, number in rows], pa.binary()),
            pa.array([[]] * len(rows), _HEADERS),
            pa.array([one - (1 << 64) if one >> 63 else one for one in digests], pa.int64()),
        ],
        names=["topic", "partition", "timestamp", "key", "value", "headers", "digest"],
    )
