"""The record that a reader at an offset gets next, on many partitions of one cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ferry.config.client_options import FetchOptions
from ferry.errors import Corrupt, Unreachable
from ferry.features.verify.acts.pairing import Side, opened
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import LATEST, listed_offsets
from ferry.kafka.fetch.source import SourceReader
from ferry.model import RecordContent, TopicPartition
from ferry.wire.codecs import Malformed, TooLong

_NEWS_SECONDS = 0.2


async def next_records(
    cluster: Cluster,
    offsets: Mapping[TopicPartition, int],
    *,
    isolation: int,
    memory_bytes: int,
    options: FetchOptions,
) -> dict[TopicPartition, RecordContent | None]:
    """Return the first record at or after each offset; None if a reader of that isolation gets none.

    Raises Unreachable if a partition cannot be read, and Corrupt for a batch that cannot be opened.
    """
    ends = await listed_offsets(cluster, dict.fromkeys(offsets, LATEST), isolation=isolation)
    for place, unserved in ends.failed.items():
        raise Unreachable(f"{place} on cluster {cluster.alias} cannot be read: {unserved.why}")
    ranges = {place: (at, ends.found[place]) for place, at in offsets.items() if at < ends.found.get(place, at)}
    found: dict[TopicPartition, RecordContent | None] = dict.fromkeys(offsets)
    if not ranges:
        return found
    reader = SourceReader(cluster, ranges, {}, isolation=isolation, memory_bytes=memory_bytes, options=options)
    waiting = {
        place: Side(alias=cluster.alias, place=place, range=part, buffer=reader.buffer)
        for place, part in ranges.items()
    }
    until = time.monotonic() + cluster.patience_s
    try:
        await reader.start()
        while waiting:
            for place, side in list(waiting.items()):
                found[place] = _first(side)
                if side.failure is not None:
                    raise Unreachable(f"{place} on cluster {cluster.alias} cannot be read: {side.failure.message}")
                if found[place] is not None or side.is_over:
                    side.stop()
                    del waiting[place]
                    until = time.monotonic() + cluster.patience_s
            if time.monotonic() > until:
                raise Unreachable(f"{min(waiting)} on cluster {cluster.alias} sends no record: look at its brokers")
            if waiting:
                reader.buffer.arrived.clear()
                await reader.buffer.news(_NEWS_SECONDS)
    finally:
        reader.close()
    return found


def _first(side: Side) -> RecordContent | None:
    """Return the first record of what has arrived, and drop batches without one."""
    try:
        while (batch := side.head) is not None:
            content = next(opened(batch, side.range), None)
            if content is not None:
                return content
            side.take()
    except (Malformed, TooLong) as error:
        raise Corrupt(f"a batch of {side.place} on cluster {side.alias} cannot be opened: {error}") from error
    return None
