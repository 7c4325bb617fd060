"""Batches of format v2 made of records: key, value, timestamp and headers as given (KIP-98, KIP-82).

The sender of a batch sets producer and checksum (`ferry.wire.batch.restamped`). Timestamps are ms, exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ferry.model import Compression
from ferry.wire.batch import BEFORE_LENGTH, HEADER, HEADER_BYTES, MAGIC, Batch, batches
from ferry.wire.codecs import compressed
from ferry.wire.headers import NO_HEADERS, Header
from ferry.wire.renumber import HIGHEST, LOWEST
from ferry.wire.varints import varint, zigzag

_NULL = b"\1"
RECORD_OVERHEAD = 32
"""About how many bytes a record takes in addition to its key, value and headers."""


class NewRecord(NamedTuple):
    """A record to write; a null value is a tombstone."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]

    @property
    def size(self) -> int:
        """About how many bytes it takes before it is compressed."""
        named = sum(len(name) + len(value or b"") + 4 for name, value in self.headers) if self.headers else 0
        return RECORD_OVERHEAD + len(self.key or b"") + len(self.value or b"") + named


def batch_of(records: Sequence[NewRecord], compression: Compression) -> Batch:
    """Return the records, at least one, as one batch, in their order. Its offsets begin at 0."""
    base = records[0].timestamp
    out: list[bytes] = []
    for index, (timestamp, key, value, headers) in enumerate(records):
        delta = (timestamp - base - LOWEST) % (HIGHEST - LOWEST + 1) + LOWEST  # Java's arithmetic overflows
        body = b"".join(
            (
                b"\0",
                varint(zigzag(delta)),
                varint(index << 1),
                _NULL if key is None else varint(len(key) << 1) + key,
                _NULL if value is None else varint(len(value) << 1) + value,
                packed_headers(headers),
            )
        )
        out += (varint(len(body) << 1), body)
    payload = compressed(compression, b"".join(out))
    header = HEADER.pack(
        0, HEADER_BYTES + len(payload) - BEFORE_LENGTH, -1, MAGIC, 0, compression.codec, len(records) - 1, base,
        max(record.timestamp for record in records), -1, -1, -1, len(records),
    )  # fmt: skip
    (batch,) = batches(bytearray().join((header, payload)))
    return batch


def packed_headers(headers: Sequence[Header]) -> bytes:
    """Encode headers in a record's form, which `ferry.wire.headers.parse_headers` reads."""
    if not headers:
        return NO_HEADERS
    out = [varint(len(headers) << 1)]
    for name, value in headers:
        out += (varint(len(name) << 1), name)
        out.append(_NULL if value is None else varint(len(value) << 1) + value)
    return b"".join(out)
