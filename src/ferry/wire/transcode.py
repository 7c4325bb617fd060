"""Batches that are encoded again: those that cannot go to the target as bytes become batches of format v2.

These are batches

- with holes: a broker takes only counts of lastOffsetDelta + 1;
- with records outside the range;
- of log append times;
- with a delete horizon for a base timestamp (KIP-534);
- larger than the target takes;
- of the formats v0 and v1;
- in another compression than the configured one.

Keys, values, headers and timestamps stay unchanged.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ferry.errors import Corrupt
from ferry.model import Codec, Compression
from ferry.wire.batch import BEFORE_LENGTH, DAMAGED, HEADER, HEADER_BYTES, MAGIC, Batch, batches
from ferry.wire.codecs import Buffer, Malformed, Room, compressed, decompress
from ferry.wire.headers import NO_HEADERS
from ferry.wire.legacy import Message, messages
from ferry.wire.renumber import HIGHEST, LOWEST, OffsetSpan, Renumbered, boundaries, renumbered
from ferry.wire.varints import varint, zigzag

MOST_RUNS = 2_000
"""Runs of source offsets in one new batch, so that a chunk, and with it a receipt, can end between two."""

_NULL = b"\x01"  # the length -1
_ROOM = 0.9
"""How full the parts of a batch that is too large are made at first: parts compress unequally."""


class NewBatch(NamedTuple):
    """A batch to write. `runs` are the source offsets of its records; it covers those before `end`.

    Its offsets begin at 0; producer and checksum are not set.
    """

    batch: Batch
    runs: tuple[OffsetSpan, ...]
    end: int
    first_timestamp: int
    """The first record's, which the header need not have."""


class Unsplittable(Exception):
    """One record alone is larger than the target takes."""

    def __init__(self, offset: int, size: int) -> None:
        super().__init__(f"the record at offset {offset} takes {size} bytes")
        self.offset = offset
        self.size = size


def transcoded(
    sources: Sequence[Batch],
    first: int,
    end: int = HIGHEST,
    *,
    place: str,
    compression: Compression | None,
    limit: int | None,
    room: Room,
    begun: bool = False,
) -> list[NewBatch]:
    """Return one batch of format v2, or consecutive messages of the old formats, as new batches; none when empty.

    Records before source offset `first` and from `end` on are left out. Each new batch has `limit` bytes at most, in
    the codec of the first of `sources` or in `compression`. Each source is decompressed into `room`, which bounds it.
    `place` names the partition in errors. `begun`: some of it was taken before, so that a message before `first` is
    damage. Raises Corrupt, TooLong, or Unsplittable.
    """
    batch = sources[0]
    try:
        chosen = compression or Compression(codec=_codec(batch))
        if batch.magic == MAGIC:
            found = _of_batch(batch, first, end, room)
        else:
            found = _of_messages(sources, first, end, room.most, begun)
    except Malformed as error:
        why = (
            f"batch at offset {batch.base_offset} of {place} is damaged, though its checksum holds: {error}; {DAMAGED}"
        )
        raise Corrupt(why) from error
    return _in_order(found, chosen, limit, min(sources[-1].next_offset, end))


def _codec(batch: Batch) -> Codec:
    try:
        return Codec(batch.codec)
    except ValueError:
        raise Malformed(f"it names compression {batch.codec}, which does not exist") from None


def _of_batch(batch: Batch, first: int, end: int, room: Room) -> Renumbered:
    size = decompress(batch.codec, batch.payload, room)
    return renumbered(
        room.data,
        batch.record_count,
        size=size,
        base=batch.base_offset,
        base_timestamp=batch.base_timestamp,
        first=first,
        end=end,
        stamp=batch.max_timestamp if batch.has_log_append_time else None,
    )


def _of_messages(sources: Sequence[Batch], first: int, end: int, most: int, begun: bool) -> Renumbered:
    found: list[Message] = []
    after = first - 1 if begun else -1
    for wrapper in sources:
        for message in messages(wrapper.data, most):
            if message.offset <= after:
                raise Malformed(f"its record {message.offset} does not follow record {after}")
            after = message.offset
            if first <= after < end:
                found.append(message)
    return _encoded(found)


def _encoded(found: Sequence[Message]) -> Renumbered:
    """Return the same records in format v2, without headers."""
    base = found[0].timestamp if found else LOWEST
    out: list[Buffer] = []
    for index, (_, timestamp, key, value) in enumerate(found):
        delta = (timestamp - base - LOWEST) % 2**64 + LOWEST  # Java's arithmetic overflows
        head = b"\0" + varint(zigzag(delta)) + varint(index << 1)
        fields: list[Buffer] = [head]
        for field in (key, value):
            fields += [_NULL] if field is None else [varint(len(field) << 1), field]
        fields.append(NO_HEADERS)
        out.append(varint(sum(map(len, fields)) << 1))
        out += fields
    return Renumbered(
        b"".join(out),
        len(found),
        _runs([message.offset for message in found]),
        base,
        base,
        max((message.timestamp for message in found), default=LOWEST),
    )


def _in_order(found: Renumbered, compression: Compression, limit: int | None, end: int) -> list[NewBatch]:
    """Return the records as batches, each with the source offset up to which it covers the source."""
    made = list(_fitting(found, compression, limit))
    ends = [*(part.runs[0][0] for part, _ in made[1:]), end][: len(made)]
    return [
        NewBatch(batch, tuple(part.runs), behind, part.first_timestamp)
        for (part, batch), behind in zip(made, ends, strict=True)
    ]


def _fitting(found: Renumbered, compression: Compression, limit: int | None) -> Iterator[tuple[Renumbered, Batch]]:
    """Yield the records as one batch if it is small enough, otherwise as several."""
    if not found.records:
        return
    parts = math.ceil(len(found.runs) / MOST_RUNS)
    if parts == 1:
        payload = compressed(compression, found.payload)
        size = HEADER_BYTES + len(payload)
        if limit is None or size <= limit:
            yield found, _built(found, compression.codec, payload)
            return
        if found.records == 1:
            raise Unsplittable(found.runs[0][0], size)
        parts = math.ceil(size / (limit * _ROOM))
    for part in _split(found, parts):
        yield from _fitting(part, compression, limit)


def _split(found: Renumbered, parts: int) -> Iterator[Renumbered]:
    """Yield the records in about as many parts, of about equal size; two at least."""
    edges = boundaries(found.payload, found.records)
    wanted = edges[-1] / max(2, parts)
    offsets = [start + index for start, count in found.runs for index in range(count)]
    view = memoryview(found.payload)
    begin = 0
    while begin < found.records:
        # At least one record, and of the last two at least one is left for the next part.
        behind = bisect_right(edges, edges[begin] + wanted, begin + 1, found.records + 1) - 1
        behind = max(begin + 1, min(behind, found.records - 1 if begin == 0 else found.records))
        part = renumbered(
            bytearray(view[edges[begin] : edges[behind]]),
            behind - begin,
            base=0,
            base_timestamp=found.base_timestamp,
        )
        yield part._replace(runs=_runs(offsets[begin:behind]))
        begin = behind


def _runs(offsets: Sequence[int]) -> list[OffsetSpan]:
    """Return rising offsets as runs without holes."""
    found: list[list[int]] = []
    for offset in offsets:
        if found and sum(found[-1]) == offset:
            found[-1][1] += 1
        else:
            found.append([offset, 1])
    return [(start, count) for start, count in found]


def _built(found: Renumbered, codec: Codec, payload: Buffer) -> Batch:
    """Make a batch of format v2 from a payload; its sender sets producer and checksum (`restamped`)."""
    header = HEADER.pack(
        0, HEADER_BYTES + len(payload) - BEFORE_LENGTH, -1, MAGIC, 0, codec, found.records - 1, found.base_timestamp,
        found.max_timestamp, -1, -1, -1, found.records,
    )  # fmt: skip
    (batch,) = batches(bytearray().join((header, payload)))
    return batch
