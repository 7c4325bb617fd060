"""Read a range of one partition alone, batch by batch: for small reads that are not a copy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ferry.errors import Refused, Retryable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, list_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, fetch_request, fetched
from ferry.model import TopicPartition
from ferry.wire.batch import Batch, batches

FETCH_BYTES = 8 << 20
"""What a request asks for at most; a single larger batch comes alone."""

Take = Callable[[Sequence[Batch], Any], int | None]
"""Takes the next batches, and the part of the fetch answer that they came in.

It returns the offset to fetch next, or None for the one after the last batch.
"""


async def read_batches(
    cluster: Cluster,
    place: TopicPartition,
    start: int,
    end: int,
    take: Take,
    *,
    isolation: int,
    fetch_bytes: int | None = None,
) -> None:
    """Pass the batches that hold offsets of `[start, end)` to `take`, in order.

    An answer has `fetch_bytes` at most (None: FETCH_BYTES), or one batch.

    Offsets that retention deletes are skipped. `end` is at most what the isolation may read. Raises Refused when the
    topic may not be read, Retryable when it stays unreadable, Unreachable when its leader does not answer, and Corrupt.
    """
    at = start
    until = time.monotonic() + cluster.patience_s
    while at < end:
        before = at
        at = await cluster.retrying(partial(_read_on, cluster, place, at, end, take, isolation, fetch_bytes))
        if at != before:
            until = time.monotonic() + cluster.patience_s
        elif time.monotonic() > until:
            raise Retryable(f"{place} stays unreadable at offset {at} on cluster {cluster.alias}")


async def _read_on(
    cluster: Cluster, place: TopicPartition, at: int, end: int, take: Take, isolation: int, fetch_bytes: int | None
) -> int:
    try:
        leader = cluster.leader(place)  # first: a topic that was not asked for yet has no id for the request
        request = fetch_request(
            cluster,
            {place: at},
            isolation=isolation,
            max_bytes=fetch_bytes or FETCH_BYTES,
            partition_bytes=fetch_bytes or FETCH_BYTES,
            max_wait_ms=200,
        )
        answer = await cluster.ask(request, leader)
    except Retryable:
        await cluster.refresh([place.topic])
        raise
    for part in fetched(request, answer):
        if part.error_code in codes.UNAUTHORIZED:
            raise Refused(f"not allowed to read topic {place.topic} on cluster {cluster.alias}: grant READ on it")
        if part.error_code == codes.OFFSET_OUT_OF_RANGE:
            # The answer itself does not show where the log begins: a broker puts -1 next to an error.
            begins = await list_offsets(cluster, {place: EARLIEST}, isolation=isolation)
            if begins.get(place, 0) > at:
                return begins[place]  # retention was faster
        if part.error_code:
            await cluster.refresh([place.topic])
            raise Retryable(f"{place} on cluster {cluster.alias}: {codes.advised(part.error_code)}")
        found = [one for one in batches(part.records) if one.next_offset > at or one.base_offset >= at]
        if found:
            following = take(found, part)
            at = found[-1].next_offset if following is None else following
        readable = part.last_stable_offset if isolation == READ_COMMITTED else part.high_watermark
        if not part.records and readable >= end:
            at = end  # compaction left nothing between here and the end
    return at
