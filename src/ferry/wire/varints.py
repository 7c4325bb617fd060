"""Numbers as format v2 has them: seven bits to a byte, the lowest first; signed ones are zigzag-coded.

Source: Kafka's `ByteUtils`. One takes ten bytes at most, as Java reads a long; a longer one raises Malformed. Reading
one that the data cut off raises IndexError.
"""

from __future__ import annotations

from ferry.wire.codecs import Buffer, Malformed

_MOST_BITS = 70


def varint(number: int) -> bytes:
    """An unsigned number as a varint; `zigzag` comes before it for a signed one."""
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number: int) -> int:
    """A signed 64-bit number as the unsigned one that stands for it."""
    return number << 1 if number >= 0 else (-number << 1) - 1


def read_unsigned(data: Buffer, at: int) -> tuple[int, int]:
    """A number, not zigzag-decoded, and where it ends."""
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
    """A zigzag-coded number and where it ends."""
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
