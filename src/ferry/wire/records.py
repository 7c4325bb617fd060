"""Records of Ferry's own topics: a few at a time, opened and built by kafka-python's reader and builder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from ferry.model import Record
from ferry.wire.batch import MAGIC, Batch

_GZIP = 1
_NONE = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdentity:
    """What a broker knows a producer by; the defaults are those of a producer without idempotence."""

    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    transactional: bool = False


def open_batch(batch: Batch) -> Iterator[tuple[int, bytes, bytes | None]]:
    """Offset, key (empty when null) and value of the records of a data batch."""
    for record in DefaultRecordBatch(bytes(batch.data)):
        yield record.offset, record.key or b"", record.value


def record_digests(batch: Batch) -> Iterator[tuple[int, int | None, bytes]]:
    """Offset, timestamp (ms; None: the broker's own, of log append) and a digest of key, value and headers.

    Of a data batch of format v2: of older formats nothing is told.
    """
    if batch.magic != MAGIC:
        return
    for record in DefaultRecordBatch(bytes(batch.data)):
        digest = blake2b(digest_size=16)
        for part in (record.key, record.value, *(part for name, value in record.headers for part in (name, value))):
            data = part.encode() if isinstance(part, str) else part
            digest.update(b"-" if data is None else len(data).to_bytes(4, "big") + bytes(data))
        yield record.offset, None if batch.has_log_append_time else record.timestamp, digest.digest()


def build_batch(records: Sequence[Record], timestamp_ms: int, identity: ProducerIdentity) -> bytes:
    """One batch with all the records, gzip when that is shorter (any consumer can open it)."""
    size = sum(len(record.key) + len(record.value or b"") + 64 for record in records)
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=_GZIP if size > 1024 else _NONE,
        is_transactional=identity.transactional,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        base_sequence=identity.sequence,
        batch_size=1 << 30,
    )
    for index, record in enumerate(records):
        builder.append(index, timestamp_ms, record.key, record.value, [])
    return bytes(builder.build())
