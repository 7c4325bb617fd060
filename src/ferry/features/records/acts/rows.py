"""The rows of a slot, in order, as Spark passes them; those since the last commit are kept, to be returned again.

```
target_topic string | target_partition int | partition int | offset bigint | timestamp bigint | key binary
value binary | headers array<struct<key: string, value: binary>> | refusal string | letter string
```
Sorted by target topic, target partition, source partition and offset. `refusal`: why the partition is not copied past
the record, as one sentence; `letter`: why it becomes a dead letter; null for all other records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ferry.config.flow.transforms import Poison
from ferry.errors import Refused
from ferry.features.records.rules.dead_letters import PoisonRule, poison_sentence
from ferry.model import TopicPartition
from ferry.run.spark.blocking_call import Call
from ferry.run.spark.columns import ints, nullable_binaries, strings, texts
from ferry.wire.arrow_columns import name_bytes, numbers_of
from ferry.wire.encoding import RecordColumns
from ferry.wire.written import NewRecord

COLUMNS = (
    "target_topic",
    "target_partition",
    "partition",
    "offset",
    "timestamp",
    "key",
    "value",
    "headers",
    "refusal",
    "letter",
)


def rows_of_piece(rule: PoisonRule, batch: pa.RecordBatch, target: TopicPartition) -> pa.RecordBatch:
    """Return the transformed records of one partition as slots take them: COLUMNS."""
    aims, partitions = [target.topic] * batch.num_rows, ints([target.partition] * batch.num_rows)
    return pa.RecordBatch.from_arrays(columns_of(rule, batch, aims, partitions), names=[*COLUMNS])


def columns_of(rule: PoisonRule, batch: pa.RecordBatch, aims: Sequence[str], partitions: pa.Array) -> list[pa.Array]:
    """Return the columns COLUMNS of transformed records.

    `aims` are the topics that the records are for, `partitions` their target partitions.
    """
    return [
        strings(aims),
        partitions,
        *(batch.column(name) for name in COLUMNS[2:8]),
        *_judged(rule, batch, aims),
    ]


def _judged(rule: PoisonRule, batch: pa.RecordBatch, aims: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """Return refusals and letters of the rows.

    No row may go to another topic than the plan has for it, whatever the rule.
    """
    poisons, named = batch.column("poison"), texts(batch.column("target"))
    names = {aim: rule.names.get(aim, (aim, aim)) for aim in set(aims)}
    if poisons.null_count == batch.num_rows and named == [names[aim][1] for aim in aims]:
        return pa.nulls(batch.num_rows, pa.string()), pa.nulls(batch.num_rows, pa.string())
    refusals: list[str | None] = [None] * batch.num_rows
    letters = refusals.copy()
    topics, partitions, offsets = (batch.column(name).to_pylist() for name in ("topic", "partition", "offset"))

    def refused(at: int, why: str) -> str:
        return poison_sentence(rule, topics[at], partitions[at], offsets[at], why)

    for at, (why, name, aim) in enumerate(zip(texts(poisons), named, aims, strict=True)):
        if why is not None and rule.poison is Poison.SKIP:
            letters[at] = why
        elif why is not None and rule.poison is Poison.FAIL:
            refusals[at] = refused(at, why)
        elif name != names[aim][1 if why is None else 0]:
            refusals[at] = refused(at, f"it is sent to topic {name} in place of {names[aim][1]}")
    return _texts(refusals), _texts(letters)


def _texts(found: Sequence[str | None]) -> pa.Array:
    return nullable_binaries([None if one is None else one.encode() for one in found], pa.string())


class Row(NamedTuple):
    """A record, and where it came from."""

    partition: int
    offset: int
    record: NewRecord


class RowBatch(NamedTuple):
    """Rows that follow each other and go to one place; a row that is refused or becomes a letter is alone."""

    target: TopicPartition
    batch: pa.RecordBatch
    partitions: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    refusal: str | None = None
    letter: str | None = None

    @property
    def size(self) -> int:
        """Return how many rows there are."""
        return len(self.offsets)

    def part(self, start: int, end: int | None = None) -> RowBatch:
        """Return some of the rows, by number."""
        return self._replace(
            batch=self.batch.slice(start, None if end is None else end - start),
            partitions=self.partitions[start:end],
            offsets=self.offsets[start:end],
        )

    def columns(self) -> RecordColumns:
        """Return the columns that are written."""
        return RecordColumns(*(self.batch.column(name) for name in COLUMNS[4:8]))

    def row(self) -> Row:
        """Return the first row."""
        time, key, value = (self.batch.column(name)[0].as_py() for name in COLUMNS[4:7])
        pairs = self.batch.column("headers")[0].values
        headers = list(zip(name_bytes(pairs.field("key")), pairs.field("value").to_pylist(), strict=True))
        return Row(int(self.partitions[0]), int(self.offsets[0]), NewRecord(time, key, value, headers))


class Rows:
    """Reads rows in order, and goes back to the last `settle`.

    Batches come from a thread, because a slow source or a throttle may make one wait. One that is empty says that rows
    were read and left out.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._coming: Call[pa.RecordBatch | None] | None = None
        self._kept: deque[pa.RecordBatch] = deque()
        self._opened = 0  # how many of those kept
        self._open: deque[RowBatch] = deque()
        self._passed = 0  # rows of the first one kept that were settled
        self._last: tuple[TopicPartition, int, int] | None = None
        self._ended = False
        self._broken: Exception | None = None

    def next(self) -> RowBatch | None:
        """Return the next rows for one place without taking them; None after the last. Raises Refused out of order."""
        while not self.is_ready(None):
            pass
        return self._open[0] if self._open else None

    def is_ready(self, wait_s: float | None) -> bool:
        """Report whether `next` answers at once; wait so many seconds at most, None: until a batch comes.

        It is False after an empty batch, too, so that the caller can look at its time. Raises what `next` raises.
        """
        while not self._open:
            if self._opened < len(self._kept):
                self._open = deque(_row_batches(self._kept[self._opened]))
                self._opened += 1
            elif self._ended:
                return True
            elif not self._has_come(wait_s):
                return False
        return True

    def is_reading(self, wait_s: float) -> bool:
        """Report whether a batch is still being read, after so many seconds at most."""
        return self._coming is not None and not self._coming.is_over(wait_s)

    def _has_come(self, wait_s: float | None) -> bool:
        """Keep the next batch if it comes in this time, or note the end; report whether there is something new.

        After an error, raise that again: an iterator that has raised seems to be at its end.
        """
        if self._broken is not None:
            raise self._broken
        if self._coming is None:
            self._coming = Call(partial(next, self._batches, None))
        if not self._coming.is_over(wait_s):
            return False
        came, self._coming = self._coming, None
        try:
            batch = came.result()
            if batch is not None:
                self._check_order(batch)
        except Exception as error:
            self._broken = error
            raise
        if batch is None:
            self._ended = True
        elif batch.num_rows:
            self._kept.append(batch)
        return batch is None or batch.num_rows > 0

    def take(self, count: int) -> RowBatch:
        """Take so many of the rows that `next` has returned."""
        first = self._open[0]
        if count == first.size:
            return self._open.popleft()
        self._open[0] = first.part(count)
        return first.part(0, count)

    def settle(self) -> None:
        """Drop what was taken: it is not needed any more."""
        for _ in range(self._opened - 1):
            self._kept.popleft()
        self._opened = min(self._opened, 1)
        if self._opened:
            self._passed = self._kept[0].num_rows - sum(one.size for one in self._open)

    def rewind(self) -> None:
        """Return what was taken since the last `settle` again."""
        self._opened, self._open = 0, deque()
        if self._kept:
            self._open = deque(_row_batches(self._kept[0].slice(self._passed)))
            self._opened = 1

    def _check_order(self, batch: pa.RecordBatch) -> None:
        """Raise Refused for a row that comes too late: a slot that writes in order would take it for written."""
        for row_batch in _row_batches(batch):
            partitions, offsets = np.diff(row_batch.partitions), np.diff(row_batch.offsets)
            first = row_batch.target, int(row_batch.partitions[0]), int(row_batch.offsets[0])
            rises = (partitions > 0) | ((partitions == 0) & (offsets > 0))
            if not rises.all() or (self._last is not None and first <= self._last):
                raise Refused(
                    f"records for {row_batch.target} came out of order (a bug): nothing of the chunk was written"
                )
            self._last = row_batch.target, int(row_batch.partitions[-1]), int(row_batch.offsets[-1])


def _row_batches(batch: pa.RecordBatch) -> Iterator[RowBatch]:
    count = batch.num_rows
    if not count:
        return
    topics = batch.column("target_topic").dictionary_encode()
    codes, numbers, partitions, offsets = (
        numbers_of(column) for column in (topics.indices, *(batch.column(name) for name in COLUMNS[1:4]))
    )
    alone = {
        at
        for name in COLUMNS[8:]
        if (column := batch.column(name)).null_count < count
        for at, why in enumerate(column.to_pylist())
        if why is not None
    }
    changes = np.flatnonzero((np.diff(codes) != 0) | (np.diff(numbers) != 0)) + 1
    edges = sorted({0, count, *changes.tolist(), *alone, *(at + 1 for at in alone)})
    for start, end in pairwise(edges):
        whole = RowBatch(
            TopicPartition(topics[start].as_py(), int(numbers[start])),
            batch.slice(start, end - start),
            partitions[start:end],
            offsets[start:end],
        )
        if start in alone:
            refusal, letter = (batch.column(name)[start].as_py() for name in COLUMNS[8:])
            whole = whole._replace(refusal=refusal, letter=letter)
        yield whole
