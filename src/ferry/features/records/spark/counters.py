"""Counts, by topic, the records that transforms read and left out: in tasks, once, also if Spark repeats a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark import Accumulator, AccumulatorParam, TaskContext

from ferry.model import FilterCounts
from ferry.wire.arrow_columns import numbers_of

if TYPE_CHECKING:  # workers begin lighter
    from pyspark.sql import SparkSession

Place = tuple[str, str, int, int]
"""What is counted, of which topic, and the numbers of the stream and of the task, which a repeated task has, too.

Slots that Python writes alone have their own number instead of the task's: a task has several, and repeats some.
"""

Found = Mapping[tuple[str, str], int]
"""What was counted, and of which topic."""

Counting = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Passes batches on."""

READ, KEPT = "read", "kept"


class _ByPlace(AccumulatorParam[dict[Place, int]]):
    """Keeps the last of the counts of one place: they are the same, or the earlier task's work is gone."""

    def zero(self, value: dict[Place, int]) -> dict[Place, int]:
        """Return an empty value."""
        return {}

    def addInPlace(self, value1: dict[Place, int], value2: dict[Place, int]) -> dict[Place, int]:  # noqa: N802 - Spark's name
        """Return both, combined."""
        value1.update(value2)
        return value1


class Counters:
    """The counts of one Spark job."""

    def __init__(self, spark: SparkSession) -> None:
        self._counts = spark.sparkContext.accumulator({}, _ByPlace())

    def counting(self, what: str, stream: int) -> Counting:
        """Return a stage that passes batches on, in a task, and counts their rows by the column `topic`."""
        return partial(_counted, self._counts, what, stream)

    def adding(self, stream: int) -> Callable[[int, Found], None]:
        """Return a function that adds the counts of a slot, by its number: its task counts, and reports once a slot."""
        return partial(_add, self._counts, stream)

    def forget(self, *, but: int | None = None) -> None:
        """Reset the counts, before another job is counted; those of stream number `but` stay.

        What that job counts under the same number takes the place of the count that stayed.
        """
        self._counts.value = {place: number for place, number in self._counts.value.items() if place[2] == but}

    def totals(self) -> dict[str, FilterCounts]:
        """Return the counts by topic. Call it when the job is done."""
        totals: Counter[tuple[str, str]] = Counter()
        counts: Mapping[Place, int] = self._counts.value
        for (what, topic, _, _), number in counts.items():
            totals[what, topic] += number
        topics = sorted({topic for _, topic in totals})
        return {topic: FilterCounts(totals[READ, topic], totals[KEPT, topic]) for topic in topics}


def _counted(
    counts: Accumulator[dict[Place, int]], what: str, stream: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    found: Counter[str] = Counter()
    for batch in batches:
        found.update(by_topic(batch))
        yield batch
    task = TaskContext.get()
    if task is not None:
        _add(counts, stream, task.partitionId(), {(what, topic): count for topic, count in found.items()})


def _add(counts: Accumulator[dict[Place, int]], stream: int, number: int, found: Found) -> None:
    if found:
        counts.add({(what, topic, stream, number): count for (what, topic), count in found.items()})


def by_topic(batch: pa.RecordBatch) -> dict[str, int]:
    """Count the rows of each topic."""
    topics = batch.column("topic").dictionary_encode()
    if len(topics.dictionary) == 1:
        return {topics.dictionary[0].as_py(): batch.num_rows}
    counts = np.bincount(numbers_of(topics.indices), minlength=len(topics.dictionary))
    return dict(zip(topics.dictionary.to_pylist(), counts.tolist(), strict=True))
