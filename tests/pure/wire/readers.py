"""The readers of records by name: each reads a batch whole, and says how many records it found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

from ferry.kafka.fetch import committed
from ferry.kafka.fetch.committed import ReadRecord, UnopenedBatch
from ferry.model import TopicPartition
from ferry.wire.batch import Batch
from ferry.wire.codecs import TooLong
from ferry.wire.records import open_batch, record_digests

PLACE = TopicPartition(topic="orders", partition=0)


def read_as_committed(found: Sequence[Batch]) -> tuple[list[ReadRecord], list[UnopenedBatch]]:
    """What failback's reader hands over of batches that a broker sent."""
    records: list[ReadRecord] = []
    unopened: list[UnopenedBatch] = []

    async def fetch(_: object, __: object, ___: int, ____: int, take: Callable[..., int | None], **_____: int) -> None:
        left = list(found)
        while left and (at := take(left, SimpleNamespace(aborted=()))) is not None:
            left = [batch for batch in left if batch.base_offset >= at]

    with mock.patch.object(committed, "read_batches", fetch):
        asyncio.run(
            committed.read_committed(cast("Any", None), PLACE, -(2**63), 2**63, records.append, unopened.append)
        )
    return records, unopened


def _committed(batch: Batch) -> int:
    records, unopened = read_as_committed([batch])
    if unopened:
        raise TooLong(unopened[0].why)
    return len(records)


READERS: dict[str, Callable[[Batch], int]] = {
    "ledger": lambda batch: sum(1 for _ in open_batch(batch)),
    "digests": lambda batch: sum(1 for _ in record_digests(batch, 64 << 20)),
    "committed": _committed,
}
