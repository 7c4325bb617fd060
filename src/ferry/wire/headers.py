"""The headers of a record in format v2: a varint count, then name and value of each, in order.

Source: Kafka's `DefaultRecord.readHeaders` (KIP-82). Names may repeat, values may be null.
"""

from __future__ import annotations

from ferry.wire.codecs import Malformed
from ferry.wire.varints import read_signed

NO_HEADERS = b"\x00"
"""The encoded headers of a record without headers."""

Header = tuple[bytes, bytes | None]
"""Name (UTF-8, if the producer follows the protocol) and value."""


def parse_headers(data: bytes) -> list[Header]:
    """Return the headers in order. Raises Malformed when the bytes are not exactly headers."""
    if data == NO_HEADERS:
        return []
    try:
        count, at = read_signed(data, 0)
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
    size, at = read_signed(data, at)
    if size < 0:
        return None, at
    if at + size > len(data):
        raise Malformed(f"a header has a field of {size} bytes where {len(data) - at} are left")
    return data[at : at + size], at + size
