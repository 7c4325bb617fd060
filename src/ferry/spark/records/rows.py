"""Records as Arrow batches, built from buffers. Runs in Python workers; knows no Spark."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import accumulate, chain, compress

import pyarrow as pa

from ferry.decide.records.filters import Narrowing
from ferry.errors import Corrupt
from ferry.run.records.reading import ReadSpec, read_batches
from ferry.spark.columns import ints, longs, nullable_binaries
from ferry.wire.batch import Batch
from ferry.wire.codecs import Malformed, TooLong
from ferry.wire.columns import Columns, columns
from ferry.wire.headers import NO_HEADERS, Header, parse_headers

MOST_ROWS = 20_000
MOST_BYTES = 8 << 20
"""An Arrow batch is handed over when it has so many rows, or as many bytes in keys and values."""

MOST_DECOMPRESSED = 256 << 20
"""Bytes of one Kafka batch that are held decompressed."""

_NO_PAIRS: list[Header] = []

_NO_TIME, _CREATE_TIME, _LOG_APPEND_TIME = -1, 0, 1


def record_rows(spec: ReadSpec, where: Narrowing, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The records of the pieces for which the conditions hold. Raises as `read_batches`."""
    rows = _Rows(schema)
    narrow = not (where.offsets.is_open and where.timestamps.is_open)
    for piece, batch in read_batches(spec):
        topic, partition = piece.place
        try:
            found = columns(batch, MOST_DECOMPRESSED, piece.start, piece.end)
            if narrow:
                found = _narrowed(found, where)
            rows.add(topic, partition, _time_kind(batch), found)
        except (Malformed, TooLong) as error:
            raise Corrupt(
                f"the batch at offset {batch.base_offset} of {piece.place} cannot be read: {error}"
            ) from error
        if rows.is_full:
            yield rows.taken()
    if rows.count:
        yield rows.taken()


def _narrowed(found: Columns, where: Narrowing) -> Columns:
    kept = [
        where.offsets.admits(offset) and where.timestamps.admits(timestamp)
        for offset, timestamp in zip(found.offsets, found.timestamps, strict=True)
    ]
    if all(kept):
        return found
    return Columns(
        list(compress(found.offsets, kept)),
        list(compress(found.timestamps, kept)),
        list(compress(found.keys, kept)),
        list(compress(found.values, kept)),
        list(compress(found.headers, kept)),
    )


def _time_kind(batch: Batch) -> int:
    if batch.magic == 0:
        return _NO_TIME
    return _LOG_APPEND_TIME if batch.has_log_append_time else _CREATE_TIME


class _Rows:
    """Rows until there are enough of them."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self._bytes = 0
        self._topics: list[bytes] = []
        self._partitions = array("i")
        self._offsets = array("q")
        self._timestamps = array("q")
        self._kinds = array("i")
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._headers: list[list[Header]] = []

    @property
    def is_full(self) -> bool:
        """Whether it is time to hand them over."""
        return self.count >= MOST_ROWS or self._bytes >= MOST_BYTES

    def add(self, topic: str, partition: int, kind: int, found: Columns) -> None:
        """Take in records of one partition. Raises Malformed."""
        count = len(found.offsets)
        self.count += count
        self._topics += [topic.encode()] * count
        self._partitions.extend([partition] * count)
        self._kinds.extend([kind] * count)
        self._offsets.extend(found.offsets)
        self._timestamps.extend(found.timestamps)
        self._keys += found.keys
        self._values += found.values
        self._headers += [_NO_PAIRS if one == NO_HEADERS else parse_headers(one) for one in found.headers]
        self._bytes += sum(len(one) for one in chain(found.keys, found.values, found.headers) if one is not None)

    def taken(self) -> pa.RecordBatch:
        """All of them as an Arrow batch, in the schema's types."""
        kinds = [field.type for field in self._schema]
        arrays = [
            nullable_binaries(self._topics, kinds[0]),
            ints(self._partitions),
            longs(self._offsets),
            longs(self._timestamps),
            ints(self._kinds),
            nullable_binaries(self._keys, kinds[5]),
            nullable_binaries(self._values, kinds[6]),
            self._header_column(kinds[7]),
        ]
        self._clear()
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _header_column(self, kind: pa.ListType) -> pa.Array:
        every = list(chain.from_iterable(self._headers))
        pair = kind.value_type
        names = nullable_binaries([name for name, _ in every], pair.field(0).type)
        values = nullable_binaries([value for _, value in every], pair.field(1).type)
        pairs = pa.Array.from_buffers(pair, len(every), [None], children=[names, values])
        ends = array("i", accumulate(map(len, self._headers), initial=0))
        return pa.Array.from_buffers(kind, len(self._headers), [None, pa.py_buffer(ends)], children=[pairs])
