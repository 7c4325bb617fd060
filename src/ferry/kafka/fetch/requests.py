"""Fetch requests, and what a fetch answer contains per partition (KIP-74, KIP-98, KIP-516)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kafka.protocol.consumer import FetchRequest

from ferry.kafka.connect.cluster import Cluster
from ferry.model import TopicPartition

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
NO_NODE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPartition:
    """One partition's part of an answer; `aborted` are `(producer id, first offset)` pairs."""

    place: TopicPartition
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[tuple[int, int], ...]
    records: memoryview | bytes
    nearer_replica: int = NO_NODE
    """The replica that the leader wants us to read from (KIP-392)."""

    def readable(self, isolation: int) -> int:
        """Return the offset up to which that isolation level can read."""
        return self.last_stable_offset if isolation == READ_COMMITTED else self.high_watermark


def fetch_request(
    cluster: Cluster,
    offsets: Mapping[TopicPartition, int],
    *,
    topic_ids: Mapping[str, UUID | None] | None = None,
    leader_epochs: Mapping[TopicPartition, int] | None = None,
    isolation: int,
    max_bytes: int,
    partition_bytes: int,
    max_wait_ms: int,
    min_bytes: int = 1,
    rack: str = "",
) -> FetchRequest:
    """Make a sessionless fetch from one broker; the answer may exceed `max_bytes` by one batch (KIP-74).

    `topic_ids` (by name) name the topics that are meant; by default those that the metadata have now. With a `rack`,
    the leader may name a nearer replica instead of answering (KIP-392). A broker with another leader epoch than
    `leader_epochs` names refuses the partition (KIP-320).
    """
    part = FetchRequest.FetchTopic.FetchPartition
    epochs = leader_epochs or {}
    ids = topic_ids or {}
    by_topic: dict[str, list[Any]] = {}
    for place, offset in offsets.items():
        by_topic.setdefault(place.topic, []).append(
            part(
                partition=place.partition,
                current_leader_epoch=epochs.get(place, -1),
                fetch_offset=offset,
                last_fetched_epoch=-1,
                log_start_offset=-1,
                partition_max_bytes=partition_bytes,
            )
        )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        session_id=0,
        session_epoch=-1,
        topics=[
            FetchRequest.FetchTopic(
                topic=name, topic_id=ids[name] if name in ids else cluster.topics[name].topic_id, partitions=parts
            )
            for name, parts in by_topic.items()
        ],
        forgotten_topics_data=[],
        rack_id=rack,
    )


def record_bytes(answer: Any) -> int:
    """Return the bytes of records in an answer, cut-off batches included."""
    topics = answer.responses or ()
    return sum(len(part.records or b"") for topic in topics for part in topic.partitions or ())


def fetched(request: FetchRequest, answer: Any) -> Iterator[FetchedPartition]:
    """Yield the partitions of an answer to a request.

    The names are the request's: the metadata may have changed since.
    """
    names = {topic.topic_id: topic.topic for topic in request.topics}
    for topic in answer.responses or ():
        name = topic.topic or names.get(topic.topic_id, "")
        for part in topic.partitions or ():
            yield FetchedPartition(
                place=TopicPartition(topic=name, partition=part.partition_index),
                error_code=part.error_code,
                high_watermark=part.high_watermark,
                last_stable_offset=part.last_stable_offset,
                log_start_offset=part.log_start_offset,
                aborted=tuple((entry.producer_id, entry.first_offset) for entry in part.aborted_transactions or ()),
                records=part.records or b"",
                nearer_replica=part.preferred_read_replica,
            )
