"""The headers of a record, as format v2 has them: a varint count, then name and value of each, in order.

Source: Kafka's `DefaultRecord.readHeaders` (KIP-82). Names repeat, values may be null.
"""

from __future__ import annotations

from ferry.wire.codecs import Malformed

NONE = b"\x00"
"""Of a record without headers."""

Header = tuple[bytes, bytes | None]
"""Name (UTF-8, if the producer kept to the protocol) and value."""


def parse_headers(data: bytes) -> list[Header]:
    """The headers in order. Raises Malformed when the bytes are not just that."""
    if data == NONE:
        return []
    try:
        count, at = _varint(data, 0)
        found: list[Header] = []
        for _ in range(count):
            name, at = _field(data, at)
            value, at = _field(data, at)
            if name is None:
                raise Malformed("a header has no name")
            found.append((name, value))
    except IndexError as error:
        raise Malformed("a header ends too early") from error
    if count < 0 or at != len(data):
        raise Malformed(f"{count} headers take {at} bytes of {len(data)}")
    return found


def _field(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _varint(data, at)
    if size < 0:
        return None, at
    if at + size > len(data):
        raise Malformed(f"a header has a field of {size} bytes where {len(data) - at} are left")
    return data[at : at + size], at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
