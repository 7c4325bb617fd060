"""Fetch answers as the client decodes them, and the cluster that they come from."""

from __future__ import annotations

import struct
from types import SimpleNamespace

from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, PartitionInfo, TopicInfo
from ferry.model import Record, TopicPartition
from ferry.wire.records import ProducerIdentity, build_batch

PLACE = TopicPartition(topic="orders", partition=3)
OTHER = TopicPartition(topic="orders", partition=4)


def batch(count: int, base: int = 0, leader_epoch: int = -1) -> bytes:
    """A batch with so many records from offset `base` on."""
    data = bytearray(build_batch([Record(key=b"k", value=b"v" * 50)] * count, 1, ProducerIdentity()))
    struct.pack_into(">q", data, 0, base)  # the checksum covers neither
    struct.pack_into(">i", data, 12, leader_epoch)
    return bytes(data)


def part(
    place: TopicPartition, records: bytes = b"", *, error_code: int = 0, nearer: int = -1, end: int = 100
) -> SimpleNamespace:
    """One partition's part of an answer; `end` is what its broker lets be read. With an error it tells no offsets."""
    return SimpleNamespace(
        partition_index=place.partition,
        error_code=error_code,
        high_watermark=-1 if error_code else end,
        last_stable_offset=-1 if error_code else end,
        log_start_offset=-1 if error_code else 0,
        aborted_transactions=None,
        preferred_read_replica=nearer,
        records=records,
    )


def listed(offsets: dict[TopicPartition, int]) -> SimpleNamespace:
    """An answer to ListOffsets; -1: the broker leaves the partition's request with an error that may pass."""
    by_topic: dict[str, list[SimpleNamespace]] = {}
    for place, offset in offsets.items():
        by_topic.setdefault(place.topic, []).append(
            SimpleNamespace(
                partition_index=place.partition,
                error_code=codes.OFFSET_NOT_AVAILABLE if offset < 0 else codes.NONE,
                offset=offset,
            )
        )
    return SimpleNamespace(topics=[SimpleNamespace(name=name, partitions=parts) for name, parts in by_topic.items()])


def answer(*parts: SimpleNamespace) -> SimpleNamespace:
    """An answer about partitions of one topic."""
    return SimpleNamespace(error_code=0, responses=[SimpleNamespace(topic=PLACE.topic, partitions=list(parts))])


def lead(cluster: Cluster, leaders: dict[TopicPartition, int], leader_epoch: int = 0) -> None:
    """The metadata: who leads each partition, in which leader epoch; brokers 1 and 2 have replicas of all."""
    cluster.topics[PLACE.topic] = TopicInfo(
        name=PLACE.topic,
        topic_id=None,
        partitions={
            place.partition: PartitionInfo(
                partition=place.partition, leader=leader, leader_epoch=leader_epoch, replicas=(1, 2), in_sync=(1, 2)
            )
            for place, leader in leaders.items()
        },
        internal=False,
    )
