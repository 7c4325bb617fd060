"""Empty records: they take the offsets before the first one that the source still has, and are deleted then.

They have no key, no value and no headers. Their batches are like those of records: the sequence number is the offset.
So the brokers compare them, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from crc32c import crc32c

from ferry.ledger.map_block import MapEntry, ReceiptChain
from ferry.model import Codec, Compression, Slice, TopicPartition
from ferry.wire.batch import BEFORE_LENGTH, HEADER, HEADER_BYTES, MAGIC
from ferry.wire.codecs import compressed
from ferry.wire.varints import varint

MOST_AT_ONCE = 100_000
"""The most empty records of a batch: uncompressed, they are less than Kafka's default of `max.message.bytes`."""
MOST_BYTES = 9
"""The most bytes of an empty record, uncompressed: a broker may compress in another way, or not at all."""
RATE = 1_000_000
"""Offsets a second that a plan reckons with; ADR 57 has what was measured."""
BATCH_RATE = 100
"""Batches a second that a plan reckons with, however few offsets each has: one is sent after the other."""

_CHECKED_FROM = 21
"""The checksum of a batch covers everything from its attributes on."""
_ZSTD = Compression(codec=Codec.ZSTD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What it costs to pass offsets, about: seconds of writing, and bytes that each replica keeps until they go."""

    offsets: int
    seconds: int
    bytes: int


def passed_of(piece: Slice) -> int:
    """Return how many offsets have to be passed before the first record of a slice, in a partition without receipts."""
    return piece.start if piece.target_next is None else 0


def left_of(piece: Slice) -> int:
    """Return how many offsets have still to be passed before the first record of a slice."""
    return max(0, passed_of(piece) - (piece.target_end or 0))


def may_have_left(firsts: Collection[int], begin: int | None) -> bool:
    """Return whether empty records may be left before a first offset.

    `firsts` are those of the ledger. `begin`: where the target's log begins; None: not known.
    """
    return len(firsts) == 1 and (begin is None or begin < max(firsts)) and 0 not in firsts


def of_markers(rows: Mapping[ReceiptChain, Sequence[MapEntry]]) -> dict[TopicPartition, int]:
    """Return where the first receipt of each target partition begins whose receipts have no record.

    `rows` are all receipts of these partitions that the ledger has.
    """
    found: dict[TopicPartition, list[MapEntry]] = {}
    for of, ones in rows.items():
        found.setdefault(of.target, []).extend(ones)
    return {
        place: min(one.start for one in ones)
        for place, ones in found.items()
        if ones and not any(one.segments for one in ones)
    }


def empty_until(piece: Slice, firsts: Collection[int], received: int | None, begin: int | None) -> int | None:
    """Return up to where the target of a slice with receipts may have empty records that are to be deleted; None: none.

    Receipts of markers alone leave them: they are deleted before the receipts of records. Nothing is deleted unless the
    first receipt begins at the only first offset. Another run may have noted one late, and may have sent nothing.

    `firsts` are the first offsets of the ledger. `received`: where receipts without records begin (`of_markers`); None:
    there are none, or some have records. `begin`: where the target's log begins; None: not known.
    """
    if piece.target_next is None or not may_have_left(firsts, begin):
        return None
    return received if set(firsts) == {received} else None


def due_until(piece: Slice) -> int:
    """Return up to where empty records of a planned slice's target are deleted when a record follows; 0: nowhere."""
    return passed_of(piece) or piece.empty_until or 0


def other_first(first: int, firsts: Collection[int]) -> int | None:
    """Return another first offset with which a run may have written before, to a partition without receipts.

    `firsts` are those of the ledger. The brokers compare sequence numbers alone, so an empty record of one run would
    count as the record of another one. None: there is no other.
    """
    return max((one for one in firsts if one != first), default=None)


def at_once(most_bytes: int | None) -> int:
    """Return how many empty records a batch has; `most_bytes` is the topic's `max.message.bytes`, None: not known."""
    fit = MOST_AT_ONCE if most_bytes is None else (most_bytes - HEADER_BYTES) // MOST_BYTES
    return max(1, min(MOST_AT_ONCE, fit))


def cost_of(parts: Iterable[tuple[int, int | None]]) -> Cost:
    """Return what it costs to pass offsets of partitions.

    Each has their number, and `max.message.bytes` of the topic (None: not known).
    """
    offsets = batches = size = 0
    for count, most_bytes in parts:
        most = at_once(most_bytes)
        some = -(-count // most)
        offsets, batches = offsets + count, batches + some
        size += some * HEADER_BYTES + count * _payload_bytes(most) // most
    return Cost(offsets=offsets, seconds=max(-(-offsets // RATE), -(-batches // BATCH_RATE)), bytes=size)


def empty_batch(sequence: int, count: int, *, producer: int, at_ms: int) -> bytearray:
    """Return a batch of empty records, at most MOST_AT_ONCE, as it is sent: the broker puts the offset into it.

    `sequence` is the sequence number of the first one. `at_ms` is the time of all: that of the request, because
    producer state ages by it.
    """
    payload = _payload(count)
    size = HEADER_BYTES + len(payload) - BEFORE_LENGTH
    out = bytearray(HEADER_BYTES + len(payload))
    head = (Codec.ZSTD, count - 1, at_ms, at_ms, producer, 0, sequence, count)
    HEADER.pack_into(out, 0, 0, size, -1, MAGIC, 0, *head)
    out[HEADER_BYTES:] = payload
    HEADER.pack_into(out, 0, 0, size, -1, MAGIC, crc32c(memoryview(out)[_CHECKED_FROM:]), *head)
    return out


@cache
def _payload_bytes(count: int) -> int:
    return len(_payload(count))


@cache
def _records() -> bytes:
    """Return MOST_AT_ONCE empty records, uncompressed; those of a smaller batch are the first of them."""
    out = bytearray()
    for index in range(MOST_AT_ONCE):
        body = b"\0\0" + varint(index << 1) + b"\1\1\0"  # attributes, time; no key, no value, no headers
        out += varint(len(body) << 1) + body
    return bytes(out)


def _end_of(count: int) -> int:
    """Return the bytes of the first `count` records: the number in each has a byte more from 64 and 8,192 on."""
    return 7 * count + max(0, count - (1 << 6)) + max(0, count - (1 << 13))


@cache
def _whole_batch() -> bytes:
    return bytes(compressed(_ZSTD, _records()))


def _payload(count: int) -> bytes:
    if count == MOST_AT_ONCE:
        return _whole_batch()
    return bytes(compressed(_ZSTD, _records()[: _end_of(count)]))
