"""Read a small topic whole, partition by partition, resolved by its own markers.

Kafka Connect keeps such topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferry.errors import Corrupt, Refused
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, list_offsets
from ferry.kafka.fetch.one_partition import read_batches
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.model import LedgerRecord, TopicPartition
from ferry.wire.batch import Batch
from ferry.wire.codecs import Malformed, TooLong
from ferry.wire.resolve import Resolver


async def topic_ends(cluster: Cluster, topic: str) -> dict[TopicPartition, int] | None:
    """Return where each partition ends now (high watermark); None when the cluster does not show such a topic."""
    found = await cluster.refresh([topic])
    if topic not in found:
        return None
    places = [TopicPartition(topic=topic, partition=number) for number in sorted(found[topic].partitions)]
    return await list_offsets(cluster, dict.fromkeys(places, LATEST), isolation=READ_UNCOMMITTED)


async def read_topic(
    cluster: Cluster, topic: str, *, start: dict[TopicPartition, int] | None = None
) -> list[tuple[int, LedgerRecord]] | None:
    """Return partition and record of all that a topic holds now (from `start` on), in the order of each partition.

    What an open transaction wrote has the fate OPEN. None when the cluster does not show such a topic. Raises Refused
    when it may not be read or a partition has no leader. Raises Unreachable when a leader does not answer. Raises
    Corrupt for a batch that cannot be opened.
    """
    ends = await topic_ends(cluster, topic)
    if ends is None:
        return None
    places = cluster.topics[topic].partitions
    missing = sorted(set(places) - {place.partition for place in ends})
    if missing:
        raise Refused(
            f"{topic}-{missing[0]} on cluster {cluster.alias} has no leader, and a part of the topic says nothing for "
            "sure: bring its brokers back"
        )
    begins = await list_offsets(cluster, dict.fromkeys(ends, EARLIEST), isolation=READ_UNCOMMITTED)
    return [
        (place.partition, record)
        for place, end in ends.items()
        for record in await _read(cluster, place, max(begins.get(place, 0), (start or {}).get(place, 0)), end)
    ]


async def _read(cluster: Cluster, place: TopicPartition, start: int, end: int) -> list[LedgerRecord]:
    resolver = Resolver()

    def feed(found: Sequence[Batch], _: Any) -> None:
        for batch in found:
            try:
                resolver.feed(batch)
            except (Corrupt, Malformed, TooLong) as error:
                raise Corrupt(
                    f"the batch at offset {batch.base_offset} of {place} on cluster {cluster.alias} cannot be read: "
                    f"{error}; look at who else writes to this topic"
                ) from error

    await read_batches(cluster, place, start, end, feed, isolation=READ_UNCOMMITTED)
    return list(resolver.records())
