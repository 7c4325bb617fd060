"""What Spark tasks do to compare repartitioned copies with the target. Runs in Python workers, without Spark's API.

Rows are numbered by target partition and chunk, are sorted, and are compared chunk by chunk, by their number in it. The
records of a target partition are read once, in their order.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, groupby, islice

import numpy as np
import pyarrow as pa

from ferry.config.flow.transforms import Poison
from ferry.errors import Corrupt, FerryError, Refused
from ferry.features.records.acts.reading import ReadSpec, read_batches
from ferry.features.records.rules.partition_columns import Longs
from ferry.features.records.rules.ranges import ReadRange
from ferry.features.records.spark.slot_assignment import by_topic, chosen_names, dealt_places
from ferry.features.verify.acts.compare import Compared
from ferry.features.verify.acts.pairing import opened
from ferry.features.verify.acts.verifier import CompareSpec
from ferry.features.verify.rules.differences import SOURCE, TARGET, Places, See
from ferry.features.verify.rules.repartitioned import ByNumber, Chunk, DealtCopy, source_differences, unfinished
from ferry.features.verify.spark.compare_rows import COMPARE_COLUMNS, NAMING, Row, rows_to_compare, size_of, trouble
from ferry.model import RecordContent, Segment
from ferry.plan.rules.record_sample import record_samples
from ferry.run.spark.columns import binaries, ints, nullable_binaries, texts
from ferry.wire.arrow_columns import valid_of
from ferry.wire.codecs import Malformed, TooLong

_CHUNK = 256
"""Records of a side that are fed at once."""


def numbered_repartitioned_rows(
    tasks: Mapping[int, int],
    copies: Sequence[DealtCopy],
    poison: Poison,
    targets: Mapping[str, Sequence[str]],
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Return the rows that belong to a chunk, with the numbers of its copy and of it, without dead letters.

    `tasks` are those of the copies, by their numbers; `targets` are the target topics that records may choose, by
    source topic.
    """
    of_topics: dict[tuple[str, str], list[int]] = {}
    for number, copy in enumerate(copies):
        of_topics.setdefault((copy.topic, copy.target.topic if targets.get(copy.topic) else ""), []).append(number)
    of_chunks = {places: _TopicChunks(copies, numbers) for places, numbers in of_topics.items()}
    for topic, name, mine in chain.from_iterable(map(partial(_by_target, targets), batches)):
        here = of_chunks.get((topic, name))
        if here is None:
            continue
        numbers, chunks = here.chosen(mine)
        kept = np.flatnonzero(numbers >= 0)
        if poison is Poison.SKIP:
            kept = kept[~valid_of(mine.column("poison"))[kept]]
        if len(kept):
            yield _numbered(tasks, copies, poison, schema, mine.take(ints(kept.tolist())), numbers[kept], chunks[kept])


def _by_target(
    targets: Mapping[str, Sequence[str]], batch: pa.RecordBatch
) -> Iterator[tuple[str, str, pa.RecordBatch]]:
    """Return the rows of each source topic and target topic; the name is empty if records have no choice."""
    for topic, rows in by_topic(batch):
        known = targets.get(topic, ())
        names = chosen_names(rows, known)
        for number in np.unique(names[names >= 0]).tolist():
            mine = rows if (names == number).all() else rows.take(ints(np.flatnonzero(names == number).tolist()))
            yield topic, known[number] if known else "", mine


def _numbered(
    tasks: Mapping[int, int],
    copies: Sequence[DealtCopy],
    poison: Poison,
    schema: pa.Schema,
    rows: pa.RecordBatch,
    numbers: Longs,
    chunks: Longs,
) -> pa.RecordBatch:
    columns = (texts(rows.column(name)) for name in ("target", "offset", "poison"))
    troubles = [
        trouble(copies[number].target, aim, offset, why, poison)
        for number, aim, offset, why in zip(numbers.tolist(), *columns, strict=True)
    ]
    arrays = [
        ints([tasks[number] for number in numbers.tolist()]),
        ints(numbers.tolist()),
        ints(chunks.tolist()),
        *(rows.column(name) for name in COMPARE_COLUMNS[3:-1]),
        nullable_binaries(troubles, schema.field("trouble").type),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(COMPARE_COLUMNS))


class _TopicChunks:
    """The chunks of one source topic, as numbers."""

    def __init__(self, copies: Sequence[DealtCopy], numbers: Sequence[int]) -> None:
        self._count = copies[numbers[0]].partitions
        self._copies = {copies[number].target.partition: number for number in numbers}
        self._begins: dict[int, Longs] = {}
        self._reached: dict[int, Longs] = {}
        width = max(len(chunk.reached) for number in numbers for chunk in copies[number].chunks)
        for number in numbers:
            copy = copies[number]
            begins, reached = np.zeros((2, len(copy.chunks), width), np.int64)
            for at, chunk in enumerate(copy.chunks):
                begins[at, : len(chunk.begins)] = chunk.begins
                reached[at, : len(chunk.reached)] = chunk.reached
            self._begins[copy.target.partition], self._reached[copy.target.partition] = begins, reached

    def chosen(self, batch: pa.RecordBatch) -> tuple[Longs, Longs]:
        """Return for each row the number of its copy (-1: of none that is compared), and of its chunk."""
        partitions, offsets, targets = dealt_places(batch, self._count)
        numbers = np.full(batch.num_rows, -1, np.int64)
        chunks = np.zeros(batch.num_rows, np.int64)
        for target, number in self._copies.items():
            begins, reached = self._begins[target], self._reached[target]
            there = np.flatnonzero((targets == target) & (partitions < begins.shape[1]))
            for part in np.unique(partitions[there]).tolist():
                rows = there[partitions[there] == part]
                # Vectors ascend: the record is in the first chunk that ends after it, if the chunk does not begin after
                # it.
                at = np.searchsorted(reached[:, part], offsets[rows], side="right")
                within = at < len(reached)
                rows, at = rows[within], at[within]
                within = begins[at, part] <= offsets[rows]
                numbers[rows[within]], chunks[rows[within]] = number, at[within]
        return numbers, chunks


def compare_repartitioned_tasks(spec: CompareSpec, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Compare the copies of a task one after the other; `spec.dealt` are all copies, by their numbers."""
    for number, rows in groupby(rows_to_compare(batches), key=lambda row: row.span):
        body = pickle.dumps(_held(spec, spec.dealt[number], rows))
        yield pa.RecordBatch.from_arrays([ints([number]), binaries([body])], names=["task", "body"])


def _held(spec: CompareSpec, copy: DealtCopy, rows: Iterable[Row]) -> Compared:
    """Compare one target partition."""
    found, see = Compared(), record_samples(spec.secret, values=spec.values)
    expected = _Chunks(row for row in rows if row.content.offset != NAMING)
    settled = 0
    with closing(_there(spec, copy, found)) as there:
        ahead = _Ahead(there)
        try:
            for number, chunk in enumerate(copy.chunks):
                found.add(_held_chunk(copy, chunk, expected.of(number), ahead.before(chunk.stop), see))
                settled = number + 1
        except FerryError as error:
            found.not_compared.append(unfinished(copy, settled, str(error)))
    return found


def _held_chunk(
    copy: DealtCopy, chunk: Chunk, rows: Iterator[Row], there: Iterator[RecordContent], see: See
) -> Compared:
    """Compare one chunk. The offset of a row is then its number in the chunk."""
    found = Compared()
    parts, offsets = array("i"), array("q")
    segments = [Segment(source_start=0, target_start=chunk.start, count=chunk.records)] if chunk.records else []
    comparison = ByNumber(
        copy.target, copy.target, Places(segments), (0, chunk.records), (chunk.start, chunk.stop), see
    )

    def expected() -> Iterator[RecordContent]:
        for row in rows:
            if row.trouble is not None:
                raise Refused(f"{copy.topic}-{row.partition}: {row.trouble}")
            found.bytes += size_of(row.content)
            parts.append(row.partition)
            offsets.append(row.content.offset)
            yield row.content._replace(offset=len(offsets) - 1)

    sides: tuple[Iterator[RecordContent], Iterator[RecordContent]] = (expected(), there)
    while not comparison.is_complete:
        for side in (SOURCE, TARGET):
            if comparison.wants(side):
                some = list(islice(sides[side], _CHUNK))
                comparison.feed(side, some, done=len(some) < _CHUNK)
    found.records, found.more = comparison.records, comparison.more
    found.differences = source_differences(
        copy.topic,
        comparison.differences,
        list(zip(parts, offsets, strict=True)) if comparison.differences else (),
        chunk,
    )
    return found


class _Chunks:
    """The rows of a copy, chunk by chunk: in order, each once."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows
        self._next: Row | None = next(rows, None)

    def of(self, number: int) -> Iterator[Row]:
        """Return the rows of a chunk; call it for all chunks in order."""
        while self._next is not None and self._next.chunk == number:
            yield self._next
            self._next = next(self._rows, None)


class _Ahead:
    """The target's records, up to an offset at a time; nothing is read before the first call."""

    def __init__(self, records: Iterator[RecordContent]) -> None:
        self._records = records
        self._kept: RecordContent | None = None

    def before(self, stop: int) -> Iterator[RecordContent]:
        """Return the next records before an offset."""
        while (found := self._kept or next(self._records, None)) is not None:
            self._kept = found
            if found.offset >= stop:
                return
            self._kept = None
            yield found


def _there(spec: CompareSpec, copy: DealtCopy, found: Compared) -> Generator[RecordContent, None, None]:
    """Return the target's records where the chunks are. Raises Corrupt, Refused, Unreachable."""
    for start, end in copy.pieces:
        wanted = ReadSpec(
            alias=spec.flow.target,
            connection=spec.target,
            fetch=spec.limits.fetch,
            pieces=(ReadRange(copy.target, start, end),),
            topic_ids={},
            patience_s=spec.patience_s,
        )
        for _, batch in read_batches(wanted):
            found.bytes += len(batch.data)
            try:
                yield from list(opened(batch, (start, end)))
            except (Malformed, TooLong) as error:
                raise Corrupt(
                    f"the batch at offset {batch.base_offset} of {copy.target} cannot be opened: {error}"
                ) from error
