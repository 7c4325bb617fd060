"""Messages of the formats v0 and v1 (magic 0 and 1), read one by one.

A message is `offset i64 | size i32 | crc u32 | magic i8 | attributes i8 | [timestamp i64, from v1] | key | value`. The
value of a compressed one is a set of messages (KIP-31, KIP-32; Kafka's `AbstractLegacyRecordBatch`). Its own offset is
that of the last one inside; those inside count from the first in v1. The crc is CRC-32 from the magic on.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from ferry.model import Codec
from ferry.wire.codecs import Buffer, Malformed, decompressed, decompressed_lz4_of_magic_0

NO_TIMESTAMP = -1

_HEAD = struct.Struct(">qiIbb")
_TIMESTAMP = struct.Struct(">q")
_SIZE = struct.Struct(">i")
_CHECKED_FROM = 16
_BEFORE_SIZE = 12  # offset and size are not counted in size

CODEC_MASK = 0x07
_LOG_APPEND_TIME = 0x08


class Message(NamedTuple):
    """One record of the old formats; null is None. `timestamp` is ms, NO_TIMESTAMP in v0."""

    offset: int
    timestamp: int
    key: memoryview | None
    value: memoryview | None


class _Entry(NamedTuple):
    message: Message
    magic: int
    attributes: int


def messages(data: Buffer, most: int) -> list[Message]:
    """Return the records of one message of a log: itself, or the set inside, `most` bytes when decompressed.

    Raises Malformed when bytes, checksums or offsets inside are wrong, TooLong when there are more bytes.
    """
    (wrapper,) = _entries(memoryview(data))
    codec = wrapper.attributes & CODEC_MASK
    if codec == Codec.NONE:
        return [wrapper.message]
    if wrapper.message.value is None:
        raise Malformed("it is compressed and has no value")
    if wrapper.magic == 0 and codec == Codec.LZ4:
        inside = decompressed_lz4_of_magic_0(wrapper.message.value, most)
    else:
        inside = decompressed(codec, wrapper.message.value, most)
    found = list(_entries(memoryview(inside)))
    if not found or any(entry.attributes & CODEC_MASK or entry.magic != wrapper.magic for entry in found):
        raise Malformed("what it has inside is not a set of plain messages")
    shift = wrapper.message.offset - found[-1].message.offset if wrapper.magic else 0
    stamp = wrapper.message.timestamp if wrapper.attributes & _LOG_APPEND_TIME else None
    return [
        entry.message._replace(
            offset=entry.message.offset + shift, timestamp=entry.message.timestamp if stamp is None else stamp
        )
        for entry in found
    ]


def crc_of(data: Buffer) -> tuple[int, int]:
    """Return the checksum that a message names, and that of its bytes."""
    named: int = _HEAD.unpack_from(data)[2]
    return named, zlib.crc32(memoryview(data)[_CHECKED_FROM:])


def _entries(view: memoryview) -> Iterator[_Entry]:
    at = 0
    try:
        while at < len(view):
            offset, size, crc, magic, attributes = _HEAD.unpack_from(view, at)
            end = at + _BEFORE_SIZE + size
            if size < 0 or end > len(view) or magic not in (0, 1):
                raise Malformed(f"the message at byte {at} has {size} bytes and magic {magic}")
            if zlib.crc32(view[at + _CHECKED_FROM : end]) != crc:
                raise Malformed(f"the message at byte {at} has another checksum than it says")
            place = at + _HEAD.size
            timestamp = NO_TIMESTAMP
            if magic:
                timestamp = _TIMESTAMP.unpack_from(view, place)[0]
                place += _TIMESTAMP.size
            key, place = _field(view, place, end)
            value, place = _field(view, place, end)
            if place != end:
                raise Malformed(f"the message at byte {at} is longer than what it holds")
            yield _Entry(Message(offset, timestamp, key, value), magic, attributes)
            at = end
    except struct.error as error:
        raise Malformed(f"a message ends too early ({error})") from error


def _field(view: memoryview, at: int, end: int) -> tuple[memoryview | None, int]:
    (size,) = _SIZE.unpack_from(view, at)
    at += _SIZE.size
    if size < 0:
        return None, at
    if at + size > end:
        raise Malformed(f"a field of {size} bytes is longer than its message")
    return view[at : at + size], at + size
