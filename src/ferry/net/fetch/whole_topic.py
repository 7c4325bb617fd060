"""Read a small topic whole, partition by partition, resolved by its own markers: what Kafka Connect keeps."""

from __future__ import annotations

import time
from functools import partial

from ferry.errors import Refused, Retryable
from ferry.model import LedgerRecord, TopicPartition
from ferry.net.connect import codes
from ferry.net.connect.cluster import Cluster
from ferry.net.fetch.offsets import EARLIEST, LATEST, list_offsets
from ferry.net.fetch.requests import READ_UNCOMMITTED, fetch_request, fetched
from ferry.wire.batch import batches
from ferry.wire.resolve import Resolver

_FETCH_BYTES = 8 << 20


async def topic_ends(cluster: Cluster, topic: str) -> dict[TopicPartition, int] | None:
    """Where each partition ends now (high watermark); None when the cluster does not show such a topic."""
    found = await cluster.refresh([topic])
    if topic not in found:
        return None
    places = [TopicPartition(topic=topic, partition=number) for number in sorted(found[topic].partitions)]
    return await list_offsets(cluster, dict.fromkeys(places, LATEST), isolation=READ_UNCOMMITTED)


async def read_topic(
    cluster: Cluster, topic: str, *, start: dict[TopicPartition, int] | None = None
) -> list[tuple[int, LedgerRecord]] | None:
    """Partition and record of all that a topic holds by now (from `start` on), in the order of each partition.

    What an open transaction wrote has the fate OPEN. None when the cluster does not show such a topic; raises Refused
    when it may not be read, Unreachable when a partition has no leader.
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
    records: list[tuple[int, LedgerRecord]] = []
    for place, end in ends.items():
        resolver = Resolver()
        at = max(begins.get(place, 0), (start or {}).get(place, 0))
        until = time.monotonic() + cluster.patience_s
        while at < end:
            before = at
            at = await cluster.retrying(partial(_read_on, cluster, place, resolver, at, end))
            if at == before and time.monotonic() > until:
                raise Retryable(f"{place} stays unreadable at offset {at} on cluster {cluster.alias}")
        records += ((place.partition, record) for record in resolver.records())
    return records


async def _read_on(cluster: Cluster, place: TopicPartition, resolver: Resolver, at: int, end: int) -> int:
    request = fetch_request(
        cluster,
        {place: at},
        isolation=READ_UNCOMMITTED,
        max_bytes=_FETCH_BYTES,
        partition_bytes=_FETCH_BYTES,
        max_wait_ms=200,
    )
    try:
        answer = await cluster.ask(request, cluster.leader(place))
    except Retryable:
        await cluster.refresh([place.topic])
        raise
    for part in fetched(cluster, {place: at}, answer):
        if part.error_code in codes.UNAUTHORIZED:
            raise Refused(f"not allowed to read topic {place.topic} on cluster {cluster.alias}: grant READ on it")
        if part.error_code == codes.OFFSET_OUT_OF_RANGE:
            begins = await list_offsets(cluster, {place: EARLIEST}, isolation=READ_UNCOMMITTED)
            if begins.get(place, 0) > at:
                return begins[place]  # retention was faster
        if part.error_code:
            await cluster.refresh([place.topic])
            raise Retryable(f"{place} on cluster {cluster.alias}: {codes.advised(part.error_code)}")
        for batch in batches(part.records):
            if batch.next_offset > at:
                resolver.feed(batch)
                at = batch.next_offset
        if not part.records and part.high_watermark >= end:
            at = end  # compaction left nothing between here and the end
    return at
