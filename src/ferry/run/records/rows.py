"""The rows of a slot, in order, as Spark hands them over; those since the last commit are kept, to be given again.

```
target_topic string | target_partition int | partition int | offset bigint | timestamp bigint | key binary
value binary | headers array<struct<key: string, value: binary>> | refusal string | letter string
```
Sorted by target topic, target partition, source partition and offset. `refusal`: why the partition is not copied past
the record, as one sentence; `letter`: why it becomes a dead letter; null of all others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from ferry.model import TopicPartition
from ferry.wire.headers import Header
from ferry.wire.written import NewRecord

if TYPE_CHECKING:  # only whoever has Spark has it
    import pyarrow as pa

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


class Row(NamedTuple):
    """A record, where it came from and where it goes."""

    target: TopicPartition
    partition: int
    offset: int
    record: NewRecord
    refusal: str | None = None
    letter: str | None = None


class Rows:
    """Reads on, and back to the last `settle`."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._kept: deque[pa.RecordBatch] = deque()
        self._opened = 0  # how many of those kept
        self._open: deque[Row] = deque()
        self._passed = 0  # rows of the first one kept that were settled

    def next(self) -> Row | None:
        """The next row without taking it; None behind the last."""
        while not self._open:
            if self._opened == len(self._kept):
                batch = next(self._batches, None)
                if batch is None:
                    return None
                self._kept.append(batch)
            self._open = deque(_rows(self._kept[self._opened]))
            self._opened += 1
        return self._open[0]

    def take(self) -> Row:
        """Take the row that `next` has shown."""
        return self._open.popleft()

    def settle(self) -> None:
        """What was taken is not needed any more."""
        for _ in range(self._opened - 1):
            self._kept.popleft()
        self._opened = min(self._opened, 1)
        if self._opened:
            self._passed = self._kept[0].num_rows - len(self._open)

    def rewind(self) -> None:
        """Give again what was taken since the last `settle`."""
        self._opened, self._open = 0, deque()
        if self._kept:
            self._open = deque(islice(_rows(self._kept[0]), self._passed, None))
            self._opened = 1


def _rows(batch: pa.RecordBatch) -> Iterator[Row]:
    topics, partitions, sources, offsets, times, keys, values = (batch.column(name).to_pylist() for name in COLUMNS[:7])
    headers = _headers(batch.column("headers"))
    refusals, letters = (_seldom(batch.column(name)) for name in COLUMNS[8:])
    place: TopicPartition = TopicPartition("", -1)
    for topic, partition, source, offset, time, key, value, pairs, refusal, letter in zip(
        topics, partitions, sources, offsets, times, keys, values, headers, refusals, letters, strict=True
    ):
        if partition != place.partition or topic != place.topic:
            place = TopicPartition(topic, partition)
        yield Row(place, source, offset, NewRecord(time, key, value, pairs), refusal, letter)


def _seldom(column: pa.Array) -> list[str | None]:
    """A column that is null but for a few rows."""
    return [None] * len(column) if column.null_count == len(column) else column.to_pylist()


def _headers(column: pa.ListArray) -> Iterator[list[Header]]:
    pairs = column.values  # not flattened: the offsets count from its beginning
    names = [name.encode() for name in pairs.field("key").to_pylist()]
    values = pairs.field("value").to_pylist()
    edges = column.offsets.to_pylist()
    for start, end in pairwise(edges):
        yield [(names[at], values[at]) for at in range(start, end)] if start < end else []
