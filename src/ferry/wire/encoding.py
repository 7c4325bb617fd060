"""Batches of format v2 from columns of Arrow: what `ferry.wire.written` makes of records one by one.

No object of Python is made for a record. numpy counts and writes the numbers, Arrow joins the pieces. Only code that
runs with Spark uses it: nothing else here needs the two libraries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ferry.model import Compression
from ferry.wire.arrow_columns import Longs, edges_of, numbers_of, valid_of
from ferry.wire.batch import BEFORE_LENGTH, HEADER, HEADER_BYTES, MAGIC, Batch, batches
from ferry.wire.codecs import compressed
from ferry.wire.written import RECORD_OVERHEAD

Varints = npt.NDArray[np.uint64]

BATCH_BYTES = 512 << 10
"""Most bytes of a batch's records before they are compressed."""

_LIMIT_SHARE = 0.9
"""The share of a topic's limit that a batch may have before it is compressed: then it fits."""

_NULL = 1
"""The length of a null field, zigzag-coded."""

_EMPTY = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(bytes(8)), pa.py_buffer(b"")])[0]


class RecordColumns(NamedTuple):
    """Records to write, at least one, as columns of the same length."""

    timestamps: pa.Array
    """Timestamps in milliseconds, as bigint."""
    keys: pa.Array
    """Keys of records, as binary; null: none."""
    values: pa.Array
    """binary, nullable; a null value is a tombstone."""
    headers: pa.Array
    """list<struct<key: string, value: binary>>, values nullable."""

    def sizes(self) -> Longs:
        """Return about how many bytes each record takes before it is compressed, by the rule of `NewRecord.size`."""
        found = _lengths(self.keys) + _lengths(self.values) + RECORD_OVERHEAD
        edges = edges_of(self.headers)
        if edges[0] != edges[-1]:
            pairs = self.headers.values
            of_pairs = _lengths(pairs.field(0)) + _lengths(pairs.field(1)) + 4
            sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(of_pairs)))
            found += np.diff(sums[edges])
        return found


def batch_room(limit: int | None) -> int:
    """Return the most bytes of a batch's records before they are compressed.

    `limit` is what the topic accepts (`max.message.bytes`); None: it is not known.
    """
    return min(BATCH_BYTES, int((BATCH_BYTES if limit is None else limit) * _LIMIT_SHARE))


def batch_of_columns(columns: RecordColumns, compression: Compression) -> Batch:
    """Return the records as one batch, in their order. Its offsets begin at 0; producer and checksum are not set."""
    times = numbers_of(columns.timestamps)
    base, count = int(times[0]), len(times)
    payload = compressed(compression, _payload(columns, times - base))  # overflows as Java's arithmetic does
    header = HEADER.pack(
        0, HEADER_BYTES + len(payload) - BEFORE_LENGTH, -1, MAGIC, 0, compression.codec, count - 1, base,
        int(times.max()), -1, -1, -1, count,
    )  # fmt: skip
    (batch,) = batches(bytearray().join((header, payload)))
    return batch


def _payload(columns: RecordColumns, deltas: Longs) -> memoryview:
    count = len(deltas)
    keys, values = _lengths(columns.keys), _lengths(columns.values)
    heads = [
        _zigzag(deltas),
        np.arange(0, 2 * count, 2, dtype=np.uint64),
        _field_varints(columns.keys, keys),
    ]
    middle = _field_varints(columns.values, values)
    headers = _headers(columns.headers)
    widths = [_widths(one) for one in heads]
    lengths = 1 + sum(widths) + keys + _widths(middle) + values
    lengths += 1 if headers is None else _lengths(headers)
    first = lengths.astype(np.uint64) << np.uint64(1)
    return _data(
        pc.binary_join_element_wise(
            _written([first, np.zeros(count, np.uint64), *heads]),
            columns.keys,
            _written([middle]),
            columns.values,
            _bare(count) if headers is None else headers,
            _EMPTY,
            null_handling="replace",
            null_replacement=b"",
        )
    )


def _headers(column: pa.Array) -> pa.Array | None:
    """Return the encoded headers of each record; None when no record has any."""
    edges = edges_of(column)
    if edges[0] == edges[-1]:
        return None
    pairs = column.values
    names, values = pairs.field(0).cast(pa.binary()), pairs.field(1)
    joined = pc.binary_join_element_wise(
        _written([_field_varints(names, _lengths(names))]),
        names,
        _written([_field_varints(values, _lengths(values))]),
        values,
        _EMPTY,
        null_handling="replace",
        null_replacement=b"",
    )
    ends = np.frombuffer(joined.buffers()[1], np.int32)[edges]
    of_records = pa.Array.from_buffers(
        pa.binary(), len(edges) - 1, [None, pa.py_buffer(np.ascontiguousarray(ends)), joined.buffers()[2]]
    )
    return pc.binary_join_element_wise(_written([(np.diff(edges) << 1).astype(np.uint64)]), of_records, _EMPTY)


def _lengths(column: pa.Array) -> Longs:
    """Return the length of each row; 0 where it is null."""
    found = np.diff(edges_of(column))
    if column.null_count:
        found[~valid_of(column)] = 0
    return found


def _field_varints(column: pa.Array, lengths: Longs) -> Varints:
    """Return the varint before each field of a column."""
    found = (lengths << 1).astype(np.uint64)
    if column.null_count:
        found[~valid_of(column)] = _NULL
    return found


def _zigzag(numbers: Longs) -> Varints:
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def _widths(numbers: Varints) -> Longs:
    """Return how many bytes each number takes as a varint."""
    found = np.ones(len(numbers), np.int64)
    bits = 7
    while bits < 64 and (numbers >> np.uint64(bits)).any():
        found += (numbers >> np.uint64(bits)) > 0
        bits += 7
    return found


def _written(columns: Sequence[Varints]) -> pa.Array:
    """Encode the varints of each row one after the other, as a column of bytes."""
    widths = [_widths(one) for one in columns]
    ends = np.zeros(len(columns[0]) + 1, np.int64)
    np.cumsum(sum(widths), out=ends[1:])
    out = np.empty(int(ends[-1]), np.uint8)
    at = ends[:-1].copy()
    for numbers, width in zip(columns, widths, strict=True):
        for byte in range(int(width.max())):
            rows = np.flatnonzero(width > byte) if byte else slice(None)
            part = (numbers[rows] >> np.uint64(7 * byte)).astype(np.uint8) & 0x7F
            out[at[rows] + byte] = part | ((width[rows] > byte + 1).astype(np.uint8) << 7)
        at += width
    return pa.Array.from_buffers(
        pa.binary(), len(ends) - 1, [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(out)]
    )


def _bare(count: int) -> pa.Array:
    """Return the headers of records without any."""
    ends = pa.py_buffer(np.arange(count + 1, dtype=np.int32))
    return pa.Array.from_buffers(pa.binary(), count, [None, ends, pa.py_buffer(bytes(count))])


def _data(column: pa.Array) -> memoryview:
    """Return the bytes of all rows of a column that was just made."""
    ends = np.frombuffer(column.buffers()[1], np.int32)
    return memoryview(column.buffers()[2]).cast("B")[: int(ends[column.offset + len(column)])]
