"""Records of format v2 as Arrow columns, many batches at a time: numpy reads all values of a field at once.

Only Python can follow the lengths from record to record. All fields after the lengths are read by column;
`ferry.wire.columns` reads them one by one. Bytes that are not as expected are left to that module, which reports what
is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ferry.wire.batch import Batch
from ferry.wire.codecs import Malformed, decompressed
from ferry.wire.headers import Header, parse_headers
from ferry.wire.varints import read_unsigned

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_MOST_BITS = 56
"""A varint with more bits is left to Python."""

_MOST_BYTES = 1 << 30
"""The limit of Arrow's offsets, which have 32 bits."""


class Unpacked(NamedTuple):
    """The records of one batch, decompressed, and which of them are wanted."""

    topic: str
    partition: int
    time_kind: int
    batch: Batch
    data: bytes | bytearray
    start: int
    end: int
    """Offsets `[start, end)` are wanted."""


class Unclear(Exception):
    """The bytes are not what was expected; a reader that goes record by record can say what is wrong."""


def unpacked(  # one argument for each field
    topic: str, partition: int, time_kind: int, batch: Batch, start: int, end: int, most: int
) -> Unpacked:
    """Decompress a batch of format v2. Nothing of the batch's own memory is kept. Raises Malformed and TooLong."""
    data = decompressed(batch.codec, batch.payload, most)
    return Unpacked(topic, partition, time_kind, batch._replace(data=memoryview(b"")), data, start, end)


class Fields(NamedTuple):
    """The fields of records as columns: where they are in `data`, and numbers."""

    data: bytes
    counts: list[int]
    """Records of each part."""
    offsets: Longs
    timestamps: Longs
    keys: tuple[Longs, Longs, Flags]
    """Where each begins and ends, and whether it is not null."""
    values: tuple[Longs, Longs, Flags]
    headers: tuple[Longs, Longs]


def fields(parts: Sequence[Unpacked]) -> Fields:
    """Return all wanted records of the parts. Raises Unclear."""
    data = b"".join(part.data for part in parts)
    if len(data) > _MOST_BYTES:
        raise Unclear
    found: list[int] = []
    base = 0
    try:
        for part in parts:
            _add_starts(found, base, part.data, part.batch.record_count)
            base += len(part.data)
        return _fields(parts, data, np.array(found, np.int64))
    except IndexError as error:
        raise Unclear from error


def _add_starts(found: list[int], base: int, data: bytes | bytearray, count: int) -> None:
    """Add where each record begins, counted from `base`."""
    at = 0
    if count < 0:
        raise Unclear
    for _ in range(count):
        found.append(base + at)
        length = data[at]
        if length < 0x80:
            at += 1 + (length >> 1)
        else:
            more = data[at + 1]
            if more < 0x80:
                at += 2 + ((length & 0x7F | more << 7) >> 1)
            else:
                length, behind = read_unsigned(data, at)
                at = behind + (length >> 1)
    if at != len(data):
        raise Unclear


def _fields(parts: Sequence[Unpacked], data: bytes, starts: Longs) -> Fields:
    raw = np.frombuffer(data, np.uint8)
    counts = np.array([part.batch.record_count for part in parts], np.int64)

    def spread(numbers: Iterable[int]) -> Longs:
        return np.repeat(np.array(list(numbers), np.int64), counts)

    length, at = _varints(raw, starts)
    stop = at + (length >> 1)
    if (length & 1).any():
        raise Unclear
    delta, at = _varints(raw, at + 1)  # after the attributes
    number, at = _varints(raw, at)
    keys, at = _spans(raw, at)
    values, at = _spans(raw, at)
    if (at > stop).any():
        raise Unclear
    offsets = spread(part.batch.base_offset for part in parts) + _signed(number)
    timestamps = spread(part.batch.base_timestamp for part in parts) + _signed(delta)  # wraps, as in Java
    stamped = [part.batch.has_log_append_time for part in parts]
    if any(stamped):
        is_stamped = np.repeat(np.array(stamped, np.bool_), counts)
        timestamps = np.where(is_stamped, spread(part.batch.max_timestamp for part in parts), timestamps)
    kept = (offsets >= spread(part.start for part in parts)) & (offsets < spread(part.end for part in parts))
    if kept.all():
        return Fields(data, counts.tolist(), offsets, timestamps, keys, values, (at, stop))
    edges = np.concatenate(([0], np.cumsum(counts)))
    sums = np.concatenate(([0], np.cumsum(kept)))
    return Fields(
        data,
        np.diff(sums[edges]).tolist(),
        offsets[kept],
        timestamps[kept],
        (keys[0][kept], keys[1][kept], keys[2][kept]),
        (values[0][kept], values[1][kept], values[2][kept]),
        (at[kept], stop[kept]),
    )


def _varints(raw: npt.NDArray[np.uint8], at: Longs) -> tuple[Longs, Longs]:
    """Return the number at each of these places, not zigzag-decoded, and where it ends."""
    byte = raw[at]
    number = (byte & 0x7F).astype(np.int64)
    behind = at + 1
    more = np.flatnonzero(byte >= 0x80)
    bits = 7
    while more.size:
        if bits >= _MOST_BITS:
            raise Unclear
        byte = raw[behind[more]]
        number[more] |= (byte & 0x7F).astype(np.int64) << bits
        behind[more] += 1
        more = more[byte >= 0x80]
        bits += 7
    return number, behind


def _signed(number: Longs) -> Longs:
    return (number >> 1) ^ -(number & 1)


def _spans(raw: npt.NDArray[np.uint8], at: Longs) -> tuple[tuple[Longs, Longs, Flags], Longs]:
    """Return the bytes after a length at each of these places, which may be null, and where they end."""
    length, start = _varints(raw, at)
    valid = (length & 1) == 0
    end = start + np.where(valid, length >> 1, 0)
    return (start, end, valid), end


def binaries(data: bytes, spans: tuple[Longs, Longs, Flags], kind: pa.DataType) -> pa.Array:
    """Make a column of the pieces of `data`, in ascending order, with Arrow's own `take`."""
    starts, ends, valid = spans
    count = len(starts)
    if not count:
        return pa.Array.from_buffers(kind, 0, [None, pa.py_buffer(b"\0\0\0\0"), pa.py_buffer(b"")])
    edges = np.empty(2 * count, np.int32)  # every second piece is what is between two of ours
    edges[::2], edges[1::2] = starts, ends
    pieces = pa.Array.from_buffers(kind, 2 * count - 1, [None, pa.py_buffer(edges), pa.py_buffer(data)])
    bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    wanted = pa.Array.from_buffers(
        pa.int32(), count, [bitmap, pa.py_buffer(np.arange(0, 2 * count, 2, dtype=np.int32))]
    )
    return pieces.take(wanted)


def header_lists(found: Fields) -> list[list[Header]] | None:
    """Return the headers of each record; None when no record has any. Raises Unclear."""
    starts, ends = found.headers
    if not len(starts):
        return None
    bare = (ends - starts == 1) & (np.frombuffer(found.data, np.uint8)[np.minimum(starts, len(found.data) - 1)] == 0)
    if bare.all():
        return None
    lists: list[list[Header]] = [[]] * len(starts)
    known: dict[bytes, list[Header]] = {}
    for at in np.flatnonzero(~bare).tolist():
        written = found.data[starts[at] : ends[at]]
        pairs = known.get(written)
        if pairs is None:
            try:
                pairs = known[written] = parse_headers(written)
            except Malformed as error:
                raise Unclear from error
        lists[at] = pairs
    return lists


def constants(names: Sequence[str], counts: Sequence[int], kind: pa.DataType) -> pa.Array:
    """Make a column of strings, each repeated for so many rows."""
    written = [name.encode() for name in names]
    lengths = np.repeat(np.array([len(name) for name in written], np.int32), counts)
    ends = np.concatenate((np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)))
    data = b"".join(name * count for name, count in zip(written, counts, strict=True))
    return pa.Array.from_buffers(kind, len(lengths), [None, pa.py_buffer(ends), pa.py_buffer(data)])


def repeated(values: Sequence[int], counts: Sequence[int]) -> npt.NDArray[np.int32]:
    """Make numbers, each repeated for so many rows."""
    return np.repeat(np.array(values, np.int32), counts)


def numbers(values: npt.NDArray[np.int64] | npt.NDArray[np.int32], kind: pa.DataType) -> pa.Array:
    """Make a column of numbers without a copy."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
