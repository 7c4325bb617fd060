"""Records of Ferry's own topics, and of MirrorMaker 2's: read and built a batch at a time, both within limits.

They are built here because a run may have a hundred thousand checkpoints to write, and kafka-python's builder takes
eight times as long.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from crc32c import crc32c

from ferry.errors import BadInput
from ferry.model import Codec, Compression, Record
from ferry.wire.batch import BEFORE_LENGTH, HEADER_BYTES, MAGIC, Batch
from ferry.wire.codecs import Buffer, TooLong, compressed
from ferry.wire.columns import columns
from ferry.wire.content import contents
from ferry.wire.headers import NO_HEADERS, parse_headers
from ferry.wire.varints import varint

MOST_BYTES = 32 << 20
"""The most bytes that the records of a batch of such a topic may take decompressed."""
MOST_RECORDS = 1 << 17
"""The most records that a batch of such a topic may have: small ones would take far more memory than bytes."""

_LEAST_MESSAGE = 32
"""Bytes of a message of an old format, whose wrapper does not show how many it holds."""
_UNCHECKED, _CHECKED = struct.Struct(">qiibI"), struct.Struct(">hiqqqhii")
"""The two parts of `ferry.wire.batch.HEADER`: the checksum covers the second, and the records after it."""
_TRANSACTIONAL = 0x10
_WORTH_PACKING = 1024
_NO_DELTA = b"\0\0"
"""A record's attributes, and its time relative to the batch's."""
_NULL = b"\1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdentity:
    """The identity of a producer at the broker; the defaults are those of a producer without idempotence."""

    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    transactional: bool = False


def open_batch(batch: Batch) -> Iterator[tuple[int, bytes, bytes | None]]:
    """Return offset, key (empty when null) and value of the records of a data batch.

    Raises Malformed when the bytes are not what the header describes, TooLong for more than `MOST_BYTES` or
    `MOST_RECORDS`.
    """
    if batch.record_count > MOST_RECORDS:
        raise TooLong(f"it has {batch.record_count} records, more than {MOST_RECORDS}")
    found = columns(batch, MOST_BYTES if batch.magic == MAGIC else MOST_RECORDS * _LEAST_MESSAGE)
    return zip(found.offsets, [key or b"" for key in found.keys], found.values, strict=True)


def record_digests(batch: Batch, most: int) -> Iterator[tuple[int, int | None, bytes]]:
    """Yield offset, timestamp (ms; None: the broker's own log append time) and a digest of key, value and headers.

    Only for a data batch of format v2; older formats yield none. Raises Malformed when the bytes are not what the
    header describes, TooLong when they are more than `most` decompressed.
    """
    if batch.magic != MAGIC:
        return
    for record in contents(batch, most):
        digest = blake2b(digest_size=16)
        for data in (record.key, record.value, *(part for pair in parse_headers(record.headers) for part in pair)):
            digest.update(b"-" if data is None else len(data).to_bytes(4, "big") + data)
        yield record.offset, None if batch.has_log_append_time else record.timestamp, digest.digest()


def build_batch(records: Sequence[Record], timestamp_ms: int, identity: ProducerIdentity) -> bytes:
    """Build one batch with all the records, gzip when that is shorter (any consumer can open it).

    Raises BadInput for records that `open_batch` would not read again.
    """
    out: list[bytes] = []
    for index, record in enumerate(records):
        value = _NULL if record.value is None else varint(len(record.value) << 1) + record.value
        body = b"".join((_NO_DELTA, varint(index << 1), varint(len(record.key) << 1), record.key, value, NO_HEADERS))
        out += (varint(len(body) << 1), body)
    payload: Buffer = b"".join(out)
    if len(payload) > MOST_BYTES or len(records) > MOST_RECORDS:
        raise BadInput(
            f"{len(records)} records of {len(payload)} bytes are too much for a batch of the ledger, which takes "
            f"{MOST_RECORDS} records and {MOST_BYTES} bytes: the first has key {records[0].key[:80]!r}"
        )
    attributes = _TRANSACTIONAL if identity.transactional else 0
    if len(payload) > _WORTH_PACKING:
        packed = compressed(Compression(codec=Codec.GZIP), payload)
        if len(packed) < len(payload):
            payload, attributes = packed, attributes | Codec.GZIP
    last = len(records) - 1
    body = _CHECKED.pack(
        attributes, last, timestamp_ms, timestamp_ms, identity.producer_id, identity.producer_epoch, identity.sequence,
        len(records),
    )  # fmt: skip
    checked = b"".join((body, payload))
    return _UNCHECKED.pack(0, HEADER_BYTES + len(payload) - BEFORE_LENGTH, -1, MAGIC, crc32c(checked)) + checked
