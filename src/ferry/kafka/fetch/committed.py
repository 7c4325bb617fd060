"""Read a range of one partition as a read_committed consumer does, record by record, with all fields of a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ferry.errors import Corrupt
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.one_partition import read_batches
from ferry.kafka.fetch.requests import READ_COMMITTED
from ferry.model import TopicPartition
from ferry.wire.aborted import AbortedTransactions
from ferry.wire.batch import Batch, check
from ferry.wire.codecs import Malformed, TooLong
from ferry.wire.content import MOST_DECOMPRESSED, contents
from ferry.wire.headers import Header, parse_headers


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRecord:
    """One record. The timestamp is in ms, -1 where it has none. Header names are bytes, because not all are UTF-8."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnopenedBatch:
    """A batch that cannot be read to its end: its bytes as in the log, and the reason as a sentence.

    It covers the offsets `[offset, end)` by its header. Records before the damage were passed to `take`.
    """

    offset: int
    end: int
    data: bytes
    why: str


async def read_committed(
    cluster: Cluster,
    place: TopicPartition,
    start: int,
    end: int,
    take: Callable[[ReadRecord], None],
    unopened: Callable[[UnopenedBatch], None],
) -> None:
    """Pass the committed records of `[start, end)` to `take`, in order; `end` is at most the last stable offset.

    `unopened` receives the batches that are damaged, or larger when decompressed than the memory allows. Raises Refused
    when the topic may not be read, Retryable when it stays unreadable, Unreachable when its leader does not answer, and
    Corrupt for a marker that is none.
    """
    aborted = AbortedTransactions()

    def judge(found: Sequence[Batch], part: Any) -> None:
        aborted.learn(part.aborted)
        for batch in found:
            if aborted.leaves_out(batch):
                continue
            try:
                check(batch, place.topic, place.partition)
                for one in contents(batch, MOST_DECOMPRESSED):
                    if start <= one.offset < end:
                        headers = tuple(parse_headers(one.headers))
                        take(
                            ReadRecord(
                                offset=one.offset,
                                timestamp_ms=one.timestamp,
                                key=one.key,
                                value=one.value,
                                headers=headers,
                            )
                        )
            except (Corrupt, Malformed, TooLong) as error:
                why = f"the batch at offset {batch.base_offset} of {place} cannot be read: {error}"
                first, after = batch.base_offset, batch.next_offset
                unopened(UnopenedBatch(offset=first, end=after, data=bytes(batch.data), why=why))

    await read_batches(cluster, place, start, end, judge, isolation=READ_COMMITTED)
