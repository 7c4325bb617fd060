"""Read a range of one partition as a read_committed consumer does, record by record, with all that a record has."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from kafka.record.default_records import DefaultRecordBatch

from ferry.errors import Corrupt, Refused, Retryable
from ferry.model import TopicPartition
from ferry.net.connect import codes
from ferry.net.connect.cluster import Cluster
from ferry.net.fetch.requests import READ_COMMITTED, fetch_request, fetched
from ferry.wire.aborted import AbortedTransactions
from ferry.wire.batch import MAGIC, Batch, batches
from ferry.wire.content import contents

_FETCH_BYTES = 8 << 20
_MOST_BYTES = 256 << 20
"""What a batch may take decompressed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRecord:
    """One record; the timestamp is ms, -1 where it has none."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


async def read_committed(
    cluster: Cluster, place: TopicPartition, start: int, end: int, take: Callable[[ReadRecord], None]
) -> None:
    """Hand over the committed records of `[start, end)` in order; `end` must not lie behind the last stable offset.

    Raises Refused when the topic may not be read, Unreachable when its leader does not answer, and Corrupt.
    """
    aborted, at = AbortedTransactions(), start
    until = time.monotonic() + cluster.patience_s

    def feed(batch: Batch) -> None:
        if aborted.leaves_out(batch):
            return
        for record in _records(batch, place):
            if start <= record.offset < end:
                take(record)

    while at < end:
        before = at
        at = await cluster.retrying(partial(_read_on, cluster, place, at, end, aborted, feed))
        if at != before:
            until = time.monotonic() + cluster.patience_s
        elif time.monotonic() > until:
            raise Retryable(f"{place} stays unreadable at offset {at} on cluster {cluster.alias}")


async def _read_on(
    cluster: Cluster,
    place: TopicPartition,
    at: int,
    end: int,
    aborted: AbortedTransactions,
    feed: Callable[[Batch], None],
) -> int:
    request = fetch_request(
        cluster,
        {place: at},
        isolation=READ_COMMITTED,
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
        if part.error_code == codes.OFFSET_OUT_OF_RANGE and part.log_start_offset > at:
            return int(part.log_start_offset)  # retention was faster
        if part.error_code:
            await cluster.refresh([place.topic])
            raise Retryable(f"{place} on cluster {cluster.alias}: {codes.advised(part.error_code)}")
        aborted.learn(part.aborted)
        for batch in batches(part.records):
            if batch.next_offset > at and batch.base_offset < end:
                feed(batch)
                at = batch.next_offset
        if not part.records and part.last_stable_offset >= end:
            at = end  # compaction left nothing between here and the end
    return at


def _records(batch: Batch, place: TopicPartition) -> list[ReadRecord]:
    try:
        if batch.magic == MAGIC:
            return [
                ReadRecord(
                    offset=one.offset,
                    timestamp_ms=-1 if one.timestamp is None else one.timestamp,
                    key=one.key,
                    value=one.value,
                    headers=tuple(one.headers),
                )
                for one in DefaultRecordBatch(bytes(batch.data))
            ]
        return [
            ReadRecord(offset=one.offset, timestamp_ms=one.timestamp, key=one.key, value=one.value, headers=())
            for one in contents(batch, _MOST_BYTES)
        ]
    except (ValueError, IndexError) as error:
        raise Corrupt(f"the batch at offset {batch.base_offset} of {place} cannot be read: {error}") from error
