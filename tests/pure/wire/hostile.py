"""Batches that no honest producer writes, and brokers take all the same: their checksums are right."""

from __future__ import annotations

import random
from collections.abc import Sequence

from crc32c import crc32c

from ferry.model import Codec, Compression
from ferry.wire.batch import BEFORE_LENGTH, HEADER, HEADER_BYTES, MAGIC, Batch, batches
from ferry.wire.codecs import compressed
from ferry.wire.varints import varint, zigzag

TIME_MS = 1_700_000_000_000


def field(data: bytes | None) -> bytes:
    """A field behind its length."""
    return varint(zigzag(-1)) if data is None else varint(zigzag(len(data))) + data


def record(
    index: int, key: bytes | None, value: bytes | None, headers: Sequence[tuple[bytes, bytes | None]] = ()
) -> bytes:
    """A record of format v2; names of headers may be any bytes."""
    pairs = b"".join(field(name) + field(content) for name, content in headers)
    body = b"\0" + varint(0) + varint(zigzag(index)) + field(key) + field(value) + varint(zigzag(len(headers))) + pairs
    return varint(zigzag(len(body))) + body


def raw_batch(
    payload: bytes,
    *,
    codec: int = Codec.NONE,
    count: int = 1,
    base: int = 0,
    attributes: int = 0,
    last_delta: int | None = None,
    producer_id: int = -1,
) -> bytes:
    """A batch of format v2 around a payload that is compressed by now."""
    head = HEADER.pack(
        base, HEADER_BYTES + len(payload) - BEFORE_LENGTH, 0, MAGIC, 0, codec | attributes,
        max(count - 1, 0) if last_delta is None else last_delta, TIME_MS, TIME_MS, producer_id, -1, -1, count,
    )  # fmt: skip
    checksum = crc32c(head[21:] + payload)
    return head[:17] + checksum.to_bytes(4, "big") + head[21:] + payload


def packed(codec: Codec, records: bytes, *, count: int = 1, base: int = 0) -> Batch:
    """The only batch of records that are compressed here."""
    (batch,) = batches(
        raw_batch(bytes(compressed(Compression(codec=codec), records)), codec=codec, count=count, base=base)
    )
    return batch


def flipped(data: bytes, rng: random.Random) -> bytes:
    """The same with some bytes changed, taken out or put in."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        if not found:
            break
        at = rng.randrange(len(found))
        match rng.randrange(5):
            case 0:
                found[at] = rng.randrange(256)
            case 1:
                found[at] ^= 1 << rng.randrange(8)
            case 2:
                del found[at : at + rng.randrange(20)]
            case 3:
                found[at:at] = rng.randbytes(rng.randrange(9))
            case _:
                found[at : at + 1] = b"\xff" * rng.choice([1, 5, 10, 20_000])
    return bytes(found)
