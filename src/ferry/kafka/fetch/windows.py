"""Read a few records of many partitions: those between two offsets, as a read_committed reader sees them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ferry.errors import Corrupt, Retryable, Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.requests import READ_COMMITTED, FetchedPartition, fetch_request, fetched
from ferry.model import Range, TopicPartition
from ferry.model.content import ContentDigest
from ferry.wire.aborted import AbortedTransactions
from ferry.wire.batch import batches
from ferry.wire.codecs import Malformed, TooLong
from ferry.wire.records import record_digests

_AT_ONCE = 64
"""Partitions per request, at most."""
_PARTITION_BYTES = 1 << 20
_MOST_DECOMPRESSED = 16 << 20
"""The most bytes that one batch may have decompressed.

Copies are only compared here, and a comparison may be left out.
"""
_ALL_BYTES = 32 << 20


async def read_windows(
    cluster: Cluster, windows: Mapping[TopicPartition, Range]
) -> dict[TopicPartition, list[ContentDigest]]:
    """Return the records in each `[low, high)`, as far as they are committed, ascending.

    A partition that cannot be read is left out: it has no leader, its records were deleted, or this login may not read
    it. A partition with a batch that is damaged or too large to be opened here is left out, too.
    """
    reading = {place: _Window(low, high) for place, (low, high) in windows.items() if low < high}
    found: dict[TopicPartition, list[ContentDigest]] = {place: [] for place in windows.keys() - reading.keys()}
    waiting = dict(reading)
    while waiting:
        first = next(iter(waiting))
        try:
            parts = await cluster.retrying(partial(_read, cluster, waiting))
        except Unreachable:
            del waiting[first]
            continue
        for part in parts:
            window = waiting[part.place]
            try:
                is_done = not part.error_code and window.take(part, alone=part.place == first)
            except (Corrupt, Malformed, TooLong):
                del waiting[part.place]
                continue
            if part.error_code:
                del waiting[part.place]
            elif is_done:
                found[part.place] = window.records
                del waiting[part.place]
    return found


class _Window:
    """What was read of one partition so far."""

    def __init__(self, low: int, high: int) -> None:
        self.at = self._low = low
        self._high = high
        self._aborted = AbortedTransactions()
        self.records: list[ContentDigest] = []

    def take(self, part: FetchedPartition, *, alone: bool) -> bool:
        """Take an answer in; return whether there is nothing more to read.

        An answer without records ends the window when the partition was the first of its request (`alone`): there is no
        more. Raises Malformed and TooLong.
        """
        self._aborted.learn(part.aborted)
        before = self.at
        for batch in batches(part.records):
            if batch.base_offset >= self._high:
                return True
            if batch.next_offset <= self.at:
                continue
            self.at = batch.next_offset
            if self._aborted.leaves_out(batch):
                continue
            for offset, time, digest in record_digests(batch, _MOST_DECOMPRESSED):
                if self._low <= offset < self._high:
                    if self.records and offset <= self.records[-1].offset:
                        raise Malformed(f"record {offset} does not follow record {self.records[-1].offset}")
                    self.records.append(
                        ContentDigest(offset=offset, timestamp_ms=time, digest=digest, leader_epoch=batch.leader_epoch)
                    )
        return self.at >= self._high or (alone and self.at == before)


_TOLD = codes.UNAUTHORIZED | {codes.OFFSET_OUT_OF_RANGE}
"""Errors that are answers: a repeat changes nothing."""


async def _read(cluster: Cluster, waiting: Mapping[TopicPartition, _Window]) -> list[FetchedPartition]:
    """Fetch the first partition, and others that its leader has."""
    first = next(iter(waiting))
    try:
        leader = cluster.leader(first)
    except Retryable:
        await cluster.refresh({first.topic})
        raise
    offsets: dict[TopicPartition, int] = {}
    for place, window in waiting.items():
        info = cluster.topics.get(place.topic)
        led = info.partitions.get(place.partition) if info is not None else None
        if led is not None and led.leader == leader:
            offsets[place] = window.at
        if len(offsets) == _AT_ONCE:
            break
    request = fetch_request(
        cluster,
        offsets,
        isolation=READ_COMMITTED,
        max_bytes=_ALL_BYTES,
        partition_bytes=_PARTITION_BYTES,
        max_wait_ms=100,
    )
    try:
        parts = list(fetched(request, await cluster.ask(request, leader)))
    except Retryable:
        await cluster.refresh({place.topic for place in offsets})
        raise
    for part in parts:
        if part.place == first and part.error_code and part.error_code not in _TOLD:
            await cluster.refresh({first.topic})
            raise Retryable(f"{first} on cluster {cluster.alias}: {codes.advised(part.error_code)}")
    return [part for part in parts if not part.error_code or part.error_code in _TOLD]
