"""Read a range of one partition as a read_committed consumer does, record by record, with all that a record has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.record.default_records import DefaultRecordBatch

from ferry.errors import Corrupt
from ferry.model import TopicPartition
from ferry.net.connect.cluster import Cluster
from ferry.net.fetch.one_partition import read_batches
from ferry.net.fetch.requests import READ_COMMITTED
from ferry.wire.aborted import AbortedTransactions
from ferry.wire.batch import MAGIC, Batch
from ferry.wire.content import contents

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

    Raises as `read_batches`.
    """
    aborted = AbortedTransactions()

    def judge(found: Sequence[Batch], part: Any) -> None:
        aborted.learn(part.aborted)
        for batch in found:
            if not aborted.leaves_out(batch):
                for record in _records(batch, place):
                    if start <= record.offset < end:
                        take(record)

    await read_batches(cluster, place, start, end, judge, isolation=READ_COMMITTED)


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
