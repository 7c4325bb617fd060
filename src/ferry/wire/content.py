"""The records of a batch as contents, and batches that need not be opened because their bytes are the same."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from ferry.model import RecordContent
from ferry.wire.batch import HEADER_BYTES, MAGIC, Batch, obstacle
from ferry.wire.codecs import Malformed, decompressed
from ferry.wire.headers import NO_HEADERS
from ferry.wire.legacy import messages
from ferry.wire.renumber import HIGHEST, LOWEST
from ferry.wire.varints import read_signed

MOST_DECOMPRESSED = 64 << 20
"""Bytes of one batch that are kept decompressed, where records are read one by one."""

_TRANSACTIONAL = 0x10
_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def same_bytes(source: Batch, target: Batch) -> bool:
    """Return whether the target's batch equals the source's, apart from the header fields that Ferry changes.

    Those are base offset, leader epoch, transactional bit, producer and checksum. False for a batch that cannot have
    been copied as bytes; its records may be equal nevertheless.
    """
    return (
        source.magic == target.magic
        and source.record_count == target.record_count
        and len(source.data) == len(target.data)
        and source.base_timestamp == target.base_timestamp
        and source.max_timestamp == target.max_timestamp
        and source.attributes | _TRANSACTIONAL == target.attributes | _TRANSACTIONAL
        and source.next_offset - source.base_offset == target.next_offset - target.base_offset
        and obstacle(source) is None
        and _equal(source.data[HEADER_BYTES:], target.data[HEADER_BYTES:])
    )


def _equal(one: memoryview, other: memoryview) -> bool:
    """Return whether two views of the same length hold the same bytes; Python's comparison is forty times slower.

    The bytes are compared in place where their addresses are available, as in a fetched buffer. A copy of one, which is
    also compared by memcmp, costs half as much again.
    """
    if one.readonly or other.readonly or not len(one):
        return bytearray(one) == other
    first, second = (ctypes.addressof(ctypes.c_char.from_buffer(view)) for view in (one, other))
    return bool(_memcmp(first, second, len(one)) == 0)


def contents(batch: Batch, most: int) -> Iterator[RecordContent]:
    """Yield the records of a data batch, or those inside one message of the formats v0 and v1, in order.

    Raises Malformed when the bytes are not what the header describes, TooLong when they are more than `most`
    decompressed.
    """
    if batch.magic != MAGIC:
        for message in messages(batch.data, most):
            key, value = (None if field is None else bytes(field) for field in (message.key, message.value))
            yield RecordContent(message.offset, message.timestamp, key, value, NO_HEADERS)
        return
    try:
        yield from _records(batch, decompressed(batch.codec, batch.payload, most))
    except IndexError as error:
        raise Malformed("a record ends too early") from error


def _records(batch: Batch, data: bytearray) -> Iterator[RecordContent]:
    """Yield records of format v2 (Kafka's `DefaultRecord`): see `ferry.wire.renumber` for their layout."""
    stamp = batch.max_timestamp if batch.has_log_append_time else None
    at = 0
    for _ in range(batch.record_count):
        length, at = read_signed(data, at)
        end = at + length
        if length < 0 or end > len(data):
            raise Malformed(f"the record at byte {at} is longer than its batch")
        delta, at = read_signed(data, at + 1)  # after the attributes
        offset, at = read_signed(data, at)
        key, at = _field(data, at, end)
        value, at = _field(data, at, end)
        if at > end:
            raise Malformed(f"the record that ends at byte {end} is shorter than its fields")
        timestamp = batch.base_timestamp + delta if stamp is None else stamp
        if not LOWEST <= timestamp <= HIGHEST:
            timestamp = (timestamp - LOWEST) % 2**64 + LOWEST  # Java's arithmetic overflows
        yield RecordContent(batch.base_offset + offset, timestamp, key, value, bytes(data[at:end]))
        at = end
    if at != len(data):
        raise Malformed(f"{len(data) - at} bytes follow its last record")


def _field(data: bytearray, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = read_signed(data, at)
    if size < 0:
        return None, at
    if at + size > end:
        raise Malformed(f"a field of {size} bytes is longer than its record")
    return bytes(data[at : at + size]), at + size
