"""What Spark tasks do to compare transformed records with the target. Runs in Python workers, without Spark's API.

```
marked_rows    which task has which ranges         -> a row for each, so that none is skipped
numbered_rows  COLUMNS of `ferry.features.records.spark.transform` -> COMPARE_COLUMNS: the rows of ranges
compare_tasks  COMPARE_COLUMNS, sorted by ORDER        -> task int, body binary: the pickled Compared of a range
```
A range's source rows come from Spark; its target records are read from the cluster while they are compared.
Repartitioned copies (`compare_repartitioned`) are compared in the same way; a range is then a target partition.
"""

from __future__ import annotations

import pickle
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice, pairwise
from typing import NamedTuple

import pyarrow as pa

from ferry.config.flow.transforms import Poison
from ferry.errors import Corrupt, FerryError, Refused
from ferry.features.records.acts.reading import ReadSpec, read_batches
from ferry.features.records.rules.ranges import ReadRange
from ferry.features.verify.acts.compare import Compared, Comparer
from ferry.features.verify.acts.pairing import opened
from ferry.features.verify.acts.verifier import CompareSpec
from ferry.features.verify.acts.wire_reader import WireReader
from ferry.features.verify.rules.compare_ranges import CompareRange, is_void
from ferry.features.verify.rules.differences import SOURCE, TARGET, Comparison, Places
from ferry.lane.connections import FlowConnections
from ferry.model import NotCompared, NotComparedKind, RecordContent, TopicPartition
from ferry.plan.rules.compaction import OneSided
from ferry.plan.rules.record_sample import record_samples
from ferry.run.spark.columns import binaries, ints, longs, nullable_binaries, texts
from ferry.wire.arrow_columns import name_bytes
from ferry.wire.codecs import Malformed, TooLong
from ferry.wire.headers import Header
from ferry.wire.written import packed_headers

COMPARE_COLUMNS = ("task", "span", "chunk", "partition", "offset", "timestamp", "key", "value", "headers", "trouble")
"""`trouble` says why a row cannot be compared, else null. `offset` is -1 in the row that names a range. `chunk` is
the number of a chunk of a repartitioned copy, else 0. `partition` is that of the source."""

ORDER = ("span", "chunk", "partition", "offset")

NAMING = -1
_CHUNK = 256
"""Records of a side that are fed at once."""


class ComparedBy(NamedTuple):
    """A range, and the task that compares it."""

    task: int
    span: CompareRange


def marked_rows(
    tasks: Mapping[int, int], schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Make a row for each range, by its number, for its task; `batches` have one row in all."""
    for batch in batches:
        if batch.num_rows:
            numbers = sorted(tasks)
            nothing: list[bytes | None] = [None] * len(numbers)
            empty = pa.ListArray.from_arrays(
                pa.array([0] * (len(numbers) + 1), pa.int32()),
                pa.array([], schema.field("headers").type.value_type),
                type=schema.field("headers").type,
            )
            columns = [
                ints([tasks[number] for number in numbers]),
                ints(numbers),
                ints([NAMING] * len(numbers)),
                ints([NAMING] * len(numbers)),
                longs([NAMING] * len(numbers)),
                longs([0] * len(numbers)),
                nullable_binaries(nothing, schema.field("key").type),
                nullable_binaries(nothing, schema.field("value").type),
                empty,
                nullable_binaries(nothing, schema.field("trouble").type),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def numbered_rows(
    copies: Mapping[int, ComparedBy], poison: Poison, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Return the rows that are in a range, with its number; without those that a copy sends to the dead letters."""
    starts: dict[tuple[str, int], list[int]] = {}
    numbers: dict[tuple[str, int], list[int]] = {}
    for number, (_, one) in sorted(copies.items(), key=lambda item: item[1].span.source_range):
        starts.setdefault(one.source, []).append(one.source_range[0])
        numbers.setdefault(one.source, []).append(number)
    for batch in batches:
        kept: list[int] = []
        chosen: list[int] = []
        troubles: list[bytes | None] = []
        columns = (texts(batch.column(name)) for name in ("topic", "target", "partition", "offset", "poison"))
        for at, (topic, aim, partition, offset, why) in enumerate(zip(*columns, strict=True)):
            place = topic, partition
            index = bisect_right(starts.get(place, ()), offset) - 1
            if index < 0:
                continue
            number = numbers[place][index]
            span = copies[number].span
            if offset >= span.source_range[1] or (why is not None and poison is Poison.SKIP):
                continue
            kept.append(at)
            chosen.append(number)
            troubles.append(trouble(span.target, aim, offset, why, poison))
        if kept:
            rows = batch.take(pa.array(kept, pa.int32()))
            arrays = [
                ints([copies[number].task for number in chosen]),
                ints(chosen),
                ints([0] * len(chosen)),
                *(rows.column(name) for name in COMPARE_COLUMNS[3:-1]),
                nullable_binaries(troubles, schema.field("trouble").type),
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=list(COMPARE_COLUMNS))


def trouble(target: TopicPartition, aim: str | None, offset: int, why: str | None, poison: Poison) -> bytes | None:
    """Return why a row of a copy cannot be compared; None when it can."""
    if why is not None and poison is Poison.FAIL:
        return f"the record at offset {offset} cannot be transformed any more: {why}".encode()
    if why is None and aim != target.topic:
        return f"the record at offset {offset} is sent to topic {aim} by now, its copy is in {target}".encode()
    return None


def compare_tasks(spec: CompareSpec, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Compare the ranges of a task one after the other; `spec.spans` are all ranges, by their numbers.

    If one cannot be read on, the others are compared even so. Raises errors that are not a FerryError.
    """
    for number, rows in groupby(rows_to_compare(batches), key=lambda row: row.span):
        body = pickle.dumps(_held(spec, spec.spans[number], rows))
        yield pa.RecordBatch.from_arrays([ints([number]), binaries([body])], names=["task", "body"])


class Row(NamedTuple):
    """A row of COMPARE_COLUMNS."""

    span: int
    chunk: int
    partition: int
    content: RecordContent
    trouble: str | None


def rows_to_compare(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """Return the rows of a task."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in COMPARE_COLUMNS[1:7])
        values, troubles = batch.column("value").to_pylist(), batch.column("trouble").to_pylist()
        headers = _headers(batch.column("headers"))
        for (number, chunk, partition, offset, time, key), value, pairs, why in zip(
            zip(*columns, strict=True), values, headers, troubles, strict=True
        ):
            yield Row(number, chunk, partition, RecordContent(offset, time, key, value, packed_headers(pairs)), why)


def _headers(column: pa.ListArray) -> Iterator[Sequence[Header]]:
    pairs = column.values  # not flattened: the offsets count from its beginning
    names = name_bytes(pairs.field("key"))
    values = pairs.field("value").to_pylist()
    for start, end in pairwise(column.offsets.to_pylist()):
        yield [(names[at], values[at]) for at in range(start, end)] if start < end else ()


def _held(spec: CompareSpec, span: CompareRange, rows: Iterable[Row]) -> Compared:
    """Compare one range."""
    places, lone, found = Places(span.segments), OneSided(), Compared()
    see = record_samples(spec.secret, values=spec.values)
    comparison = Comparison(
        span.source,
        span.target,
        places,
        span.source_range,
        span.target_range,
        see,
        one_sided=lone.add if span.compacted else None,
    )
    expected, there = _expected(rows, found), _there(spec, span, places, found)
    sides: tuple[Iterator[RecordContent], Iterator[RecordContent]] = (expected, there)
    failure: FerryError | None = None
    try:
        while not comparison.is_complete:
            for side in (SOURCE, TARGET):
                if comparison.wants(side):
                    some = list(islice(sides[side], _CHUNK))
                    comparison.feed(side, some, done=len(some) < _CHUNK)
        if span.compacted:
            _explain(spec, span, lone, found)
    except FerryError as error:
        failure = error
    finally:
        there.close()
    found.records = comparison.records
    found.differences = [*comparison.differences, *found.differences]
    found.more = comparison.more
    if failure is not None:
        found.not_compared.append(_left(span, comparison.settled_until, failure))
    return found


def _expected(rows: Iterable[Row], found: Compared) -> Iterator[RecordContent]:
    """Return what the transform makes of the source's records; Refused at one that it cannot be applied to."""
    for row in rows:
        if row.trouble is not None:
            raise Refused(row.trouble)
        if row.content.offset != NAMING:
            found.bytes += size_of(row.content)
            yield row.content


def size_of(content: RecordContent) -> int:
    """Return the bytes of a record, as it was read."""
    return len(content.key or b"") + len(content.value or b"") + len(content.headers)


def _there(
    spec: CompareSpec, span: CompareRange, places: Places, found: Compared
) -> Generator[RecordContent, None, None]:
    """Return the target's records that are compared with the copy. Raises Corrupt, Refused, Unreachable."""
    start, end = span.target_range
    if start >= end:
        return
    wanted = ReadSpec(
        alias=spec.flow.target,
        connection=spec.target,
        fetch=spec.limits.fetch,
        pieces=(ReadRange(span.target, start, end),),
        topic_ids={},
        patience_s=spec.patience_s,
    )
    for _, batch in read_batches(wanted):
        found.bytes += len(batch.data)
        try:
            yield from (
                content
                for content in list(opened(batch, span.target_range))
                if places.back(content.offset) is not None or not (span.shared or is_void(content.offset, span.void))
            )
        except (Malformed, TooLong) as error:
            raise Corrupt(
                f"the batch at offset {batch.base_offset} of {span.target} cannot be opened: {error}"
            ) from error


def _explain(spec: CompareSpec, span: CompareRange, lone: OneSided, found: Compared) -> None:
    """Find out why a side of a compacted topic lacks what the other has."""
    if not any(lone.keys) and not lone.is_full:
        return
    with FlowConnections(spec.flow, spec.target, spec.source, patience_s=spec.patience_s) as connections:
        comparer = Comparer(WireReader(connections, spec.limits), record_samples(spec.secret, values=spec.values))
        connections.run(lambda: comparer.explain_transformed(span, lone, found))


def _left(span: CompareRange, at: int, error: FerryError) -> NotCompared:
    end = span.source_range[1]
    start = min(at, end)
    return NotCompared(
        source=span.source,
        start=start,
        end=end,
        why=NotComparedKind.UNREADABLE,
        message=f"offsets {start} to {end - 1} of {span.source} could not be compared: {error}",
        asked=True,
    )
