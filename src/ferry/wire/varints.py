"""Numbers in the form of format v2: seven bits to a byte, the lowest first; signed ones are zigzag-coded.

Source: Kafka's `ByteUtils`. A number takes ten bytes at most, as a long does in Java; a longer one raises Malformed.
Reading one that is cut off raises IndexError.
"""

from __future__ import annotations

from ferry.wire.codecs import Buffer, Malformed

_MOST_BITS = 70


def varint(number: int) -> bytes:
    """Encode an unsigned number as a varint; `zigzag` comes before it for a signed one."""
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number: int) -> int:
    """Return the unsigned number that encodes a signed 64-bit number."""
    return number << 1 if number >= 0 else (-number << 1) - 1


def read_unsigned(data: Buffer, at: int) -> tuple[int, int]:
    """Return a number, not zigzag-decoded, and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
        if shift >= _MOST_BITS:
            raise Malformed("it has a number of more than ten bytes")


def read_signed(data: Buffer, at: int) -> tuple[int, int]:
    """Return a zigzag-coded number, decoded, and where it ends."""
    byte = data[at]
    at += 1
    number = byte & 0x7F
    shift = 7
    while byte & 0x80:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if shift > _MOST_BITS:
            raise Malformed("it has a number of more than ten bytes")
    return (number >> 1) ^ -(number & 1), at
