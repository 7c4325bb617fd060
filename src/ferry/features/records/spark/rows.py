"""Records as Arrow batches, built from buffers. Runs in Python workers, without Spark's API."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate, chain, compress, repeat

import pyarrow as pa

from ferry.errors import Corrupt
from ferry.features.records.acts.cutoffs import Failure, OnFailure
from ferry.features.records.acts.reading import ReadSpec, read_batches
from ferry.features.records.rules.filters import Narrowing
from ferry.features.records.rules.ranges import ReadRange
from ferry.features.records.spark.decoding import (
    Fields,
    Unclear,
    Unpacked,
    binaries,
    constants,
    fields,
    header_lists,
    numbers,
    repeated,
    unpacked,
)
from ferry.model import RefusalKind, TopicPartition
from ferry.run.spark.columns import ints, longs, nullable_binaries
from ferry.wire.batch import MAGIC, Batch
from ferry.wire.codecs import Malformed, TooLong
from ferry.wire.columns import Columns, columns, opened_columns
from ferry.wire.headers import NO_HEADERS, Header, parse_headers

MOST_ROWS = 20_000
MOST_BYTES = 512 << 10
"""An Arrow batch is passed on when it has so many rows, or so many bytes. Data in a core's own cache is read again for
each column at half the cost of other data."""

MOST_DECOMPRESSED = 256 << 20
"""Most bytes of one Kafka batch after decompression."""

_NO_PAIRS: list[Header] = []

_NO_TIME, _CREATE_TIME, _LOG_APPEND_TIME = -1, 0, 1


def record_rows(
    spec: ReadSpec, where: Narrowing, schema: pa.Schema, on_failure: OnFailure | None = None
) -> Iterator[pa.RecordBatch]:
    """Return the records of the pieces for which the conditions hold.

    Raises Corrupt, Refused and Unreachable. With `on_failure`, that is called for a piece that cannot be read on, and
    the others are read.
    """
    return rows_of(read_batches(spec, on_failure), where, schema, on_failure)


def rows_of(
    batches: Iterable[tuple[ReadRange, Batch]], where: Narrowing, schema: pa.Schema, on_failure: OnFailure | None = None
) -> Iterator[pa.RecordBatch]:
    """Return the records of batches that are in their pieces, and for which the conditions hold.

    Raises Corrupt for a batch that cannot be parsed. With `on_failure`, that is called instead: the records of the
    piece before the batch are returned, and none after it.
    """
    is_narrow = not (where.offsets.is_open and where.timestamps.is_open)
    named = _Named(on_failure)
    quick, slow = _Parts(schema, named), _Rows(schema)
    for piece, batch in batches:
        if piece.place in named.ended:
            continue
        is_quick = batch.magic == MAGIC and not is_narrow
        rows: _Parts | _Rows = quick if is_quick else slow
        other: _Parts | _Rows = slow if is_quick else quick
        if other.count:
            yield from other.taken()
            if piece.place in named.ended:
                continue
        with named(piece, batch):
            if is_quick:
                quick.add(piece, batch)
            else:
                slow.add(*piece.place, _time_kind(batch), _found(piece, batch, where if is_narrow else None))
        if rows.is_full:
            yield from rows.taken()
    for rows in (quick, slow):  # one of them is empty
        if rows.count:
            yield from rows.taken()


class _Named:
    """Reports what is wrong with a batch, with its place: raises Corrupt, or calls `on_failure`."""

    def __init__(self, on_failure: OnFailure | None) -> None:
        self._on_failure = on_failure
        self.ended: set[TopicPartition] = set()
        """Partitions with a batch that cannot be parsed."""

    @contextmanager
    def __call__(self, piece: ReadRange, batch: Batch) -> Iterator[None]:
        try:
            yield
        except (Malformed, TooLong) as error:
            message = f"the batch at offset {batch.base_offset} of {piece.place} cannot be read: {error}"
            if self._on_failure is None:
                raise Corrupt(message) from error
            self.ended.add(piece.place)
            offset = max(piece.start, batch.base_offset)
            advice = "restore it from a replica, or pass it with ferry skip"
            failure = Failure(kind=RefusalKind.CORRUPT, message=f"{message}: {advice}", offset=offset)
            self._on_failure(piece.place, failure)


def _found(piece: ReadRange, batch: Batch, where: Narrowing | None) -> Columns:
    found = columns(batch, MOST_DECOMPRESSED, piece.start, piece.end)
    return found if where is None else _narrowed(found, where)


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


class _Parts:
    """Batches of format v2 that are collected, to be read all at once."""

    def __init__(self, schema: pa.Schema, named: _Named) -> None:
        self._schema = schema
        self._named = named
        self._parts: list[tuple[ReadRange, Unpacked]] = []
        self._bytes = 0
        self.count = 0

    @property
    def is_full(self) -> bool:
        """Report whether there are enough rows or bytes to pass on."""
        return self.count >= MOST_ROWS or self._bytes >= MOST_BYTES

    def add(self, piece: ReadRange, batch: Batch) -> None:
        """Add a batch of one partition. Raises Malformed and TooLong."""
        part = unpacked(*piece.place, _time_kind(batch), batch, piece.start, piece.end, MOST_DECOMPRESSED)
        self._parts.append((piece, part))
        self._bytes += len(part.data)
        self.count += batch.record_count

    def taken(self) -> Iterator[pa.RecordBatch]:
        """Return all of them as an Arrow batch, in the schema's types. Raises Corrupt."""
        every, self._parts, self._bytes, self.count = self._parts, [], 0, 0
        try:
            found = fields([part for _, part in every])
            if len(found.offsets):
                yield self._batch([part for _, part in every], found)
        except Unclear:
            rows = _Rows(self._schema)
            for piece, part in every:
                if piece.place in self._named.ended:
                    continue
                with self._named(piece, part.batch):
                    kept = opened_columns(part.batch, bytes(part.data), piece.start, piece.end)
                    rows.add(part.topic, part.partition, part.time_kind, kept)
            if rows.count:
                yield from rows.taken()

    def _batch(self, parts: list[Unpacked], found: Fields) -> pa.RecordBatch:
        kinds = [field.type for field in self._schema]
        arrays = [
            constants([part.topic for part in parts], found.counts, kinds[0]),
            numbers(repeated([part.partition for part in parts], found.counts), kinds[1]),
            numbers(found.offsets, kinds[2]),
            numbers(found.timestamps, kinds[3]),
            numbers(repeated([part.time_kind for part in parts], found.counts), kinds[4]),
            binaries(found.data, found.keys, kinds[5]),
            binaries(found.data, found.values, kinds[6]),
            header_column(header_lists(found), len(found.offsets), kinds[7]),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


class _Rows:
    """Rows that are collected until there are enough of them."""

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
        """Report whether there are enough rows or bytes to pass on."""
        return self.count >= MOST_ROWS or self._bytes >= MOST_BYTES

    def add(self, topic: str, partition: int, kind: int, found: Columns) -> None:
        """Add records of one partition. Raises Malformed."""
        count = len(found.offsets)
        headers = [_NO_PAIRS if one == NO_HEADERS else parse_headers(one) for one in found.headers]
        self.count += count
        self._topics += [topic.encode()] * count
        self._partitions.extend([partition] * count)
        self._kinds.extend([kind] * count)
        self._offsets.extend(found.offsets)
        self._timestamps.extend(found.timestamps)
        self._keys += found.keys
        self._values += found.values
        self._headers += headers
        self._bytes += sum(len(one) for one in chain(found.keys, found.values, found.headers) if one is not None)

    def taken(self) -> Iterator[pa.RecordBatch]:
        """Return all of them as an Arrow batch, in the schema's types."""
        kinds = [field.type for field in self._schema]
        arrays = [
            nullable_binaries(self._topics, kinds[0]),
            ints(self._partitions),
            longs(self._offsets),
            longs(self._timestamps),
            ints(self._kinds),
            nullable_binaries(self._keys, kinds[5]),
            nullable_binaries(self._values, kinds[6]),
            header_column(self._headers, self.count, kinds[7]),
        ]
        self._clear()
        yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def header_column(lists: list[list[Header]] | None, count: int, kind: pa.ListType) -> pa.Array:
    """Make the column of the headers of so many records; None: no record has any."""
    every = list(chain.from_iterable(lists or ()))
    pair = kind.value_type
    names = nullable_binaries([name for name, _ in every], pair.field(0).type)
    values = nullable_binaries([value for _, value in every], pair.field(1).type)
    pairs = pa.Array.from_buffers(pair, len(every), [None], children=[names, values])
    sizes = map(len, lists) if lists is not None else repeat(0, count)
    ends = array("i", accumulate(sizes, initial=0))
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(ends)], children=[pairs])
