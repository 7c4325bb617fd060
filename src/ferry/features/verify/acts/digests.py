"""Reads the records of some receipts on the target, for their digests: half of what a comparison reads."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ferry.errors import Unreachable
from ferry.features.verify.acts.compare import CompareLimits
from ferry.features.verify.rules.differences import Places
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.requests import READ_COMMITTED
from ferry.kafka.fetch.source import SourceReader
from ferry.model import Receipt, TopicPartition
from ferry.wire.batch import Batch, extended_digest

_NEWS_SECONDS = 1.0
_STALL_SECONDS = 5.0


@dataclass(slots=True)
class Lying:
    """What was read of a receipt's chunk: other producers' batches between its own do not count."""

    receipt: Receipt
    digest: int = 0
    records: int = 0
    bytes: int = 0

    @property
    def is_as_written(self) -> bool:
        """Report whether the same records' bytes are there, in the same order."""
        return self.records == self.receipt.records and f"{self.digest:08x}" == self.receipt.digest

    def take(self, batch: Batch, places: Places) -> None:
        """Add the next batch."""
        if places.back(batch.base_offset) is not None:
            self.digest = extended_digest(self.digest, batch)
            self.records += batch.record_count
            self.bytes += len(batch.data)


async def lying(target: Cluster, chosen: Iterable[Receipt], limits: CompareLimits) -> list[Lying]:
    """Read what is on the target of the chosen receipts (ascending per partition).

    A partition that cannot be read to its end has fewer records than its receipts say. Raises Unreachable when the
    cluster does not answer any more.
    """
    found: dict[TopicPartition, list[Lying]] = {}
    for one in chosen:
        found.setdefault(one.target, []).append(Lying(one))
    reader = SourceReader(
        target,
        {place: (_starts(ones[0]), _ends(ones[-1])) for place, ones in found.items()},
        {},
        isolation=READ_COMMITTED,
        memory_bytes=limits.memory_bytes // 2,
        options=limits.fetch,
    )
    try:
        await reader.start()
        await _read(reader, found, target.patience_s + _STALL_SECONDS)
    finally:
        reader.close()
    return [one for ones in found.values() for one in ones]


async def _read(reader: SourceReader, found: Mapping[TopicPartition, list[Lying]], patience_s: float) -> None:
    buffer, moved = reader.buffer, time.monotonic()
    at = dict.fromkeys(found, 0)
    places = {place: [Places(one.receipt.segments) for one in ones] for place, ones in found.items()}
    while not buffer.exhausted():
        if buffer.arrived:
            moved = time.monotonic()
        elif time.monotonic() - moved > patience_s:
            raise Unreachable("the target sends nothing more of what receipts name: look at its brokers")
        buffer.arrived.clear()
        for place, ones in found.items():
            while buffer.queues[place]:
                fetched = buffer.take(place)
                while at[place] < len(ones) - 1 and fetched.batch.base_offset >= _ends(ones[at[place]]):
                    at[place] += 1
                if not fetched.hidden:
                    ones[at[place]].take(fetched.batch, places[place][at[place]])
                buffer.release([fetched.answer])
        if not buffer.exhausted():
            await buffer.news(_NEWS_SECONDS)


def _starts(one: Lying) -> int:
    return one.receipt.segments[0].target_start


def _ends(one: Lying) -> int:
    return one.receipt.segments[-1].target_end
