"""Records as librdkafka shows them, as contents that a comparison compares. Pure.

librdkafka does not show batches, codecs, producers, markers or the bytes of a record: none of it is compared. It shows
no time for a record of format v0, nor for one of format v1 whose time is 0. Both are -1 here, as in Java's clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ferry.features.verify.rules.differences import TARGET
from ferry.model import RecordContent

NO_TIME, CREATE_TIME, LOG_APPEND_TIME = 0, 1, 2
"""librdkafka's timestamp types (`rd_kafka_timestamp_type_t`)."""

_WRONG_TYPE = 1 << 64
"""What is added to a time whose type is wrong: it then equals no time of 64 bits."""


class Received(NamedTuple):
    """One record as librdkafka shows it; `timestamp` is ms, and means nothing if `kind` is NO_TIME."""

    offset: int
    kind: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def content_of(record: Received, side: int) -> RecordContent:
    """Return a record as a content: equal contents are equal records.

    A copy has the time type CreateTime, whatever its source has: brokers take no other one from a producer. So a copy
    with the type LogAppendTime has a time that the target's broker wrote, and equals no record of the source.
    """
    at = -1 if record.kind == NO_TIME else record.timestamp
    if side == TARGET and record.kind == LOG_APPEND_TIME:
        at += _WRONG_TYPE
    return RecordContent(record.offset, at, record.key, record.value, headers_bytes(record.headers))


def shown_content(content: RecordContent) -> RecordContent:
    """Return a content with its time as the broker has it, whatever its type."""
    at = content.timestamp
    return content._replace(timestamp=at - _WRONG_TYPE) if at >= _WRONG_TYPE >> 1 else content


def headers_bytes(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """Return headers as bytes, equal for equal headers alone: their number, then the size and bytes of each field.

    The form is that of record batches (KIP-82), so that both readers show the same digest of the same headers.
    """
    out = bytearray(_size(len(headers)))
    for name, value in headers:
        text = name.encode()
        out += _size(len(text)) + text
        out += _size(-1) if value is None else _size(len(value)) + value
    return bytes(out)


def _size(number: int) -> bytes:
    """Encode a size, or -1 for null: signs alternate, and seven bits go into a byte, the lowest first."""
    left = number << 1 if number >= 0 else 1
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)
