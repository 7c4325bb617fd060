"""Stages of the Spark tasks that read records, joined in one worker. Runs in Python workers, without Spark's API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa

from ferry.features.records.acts.cutoffs import Failure, Unread
from ferry.features.records.acts.reading import ReadSpec
from ferry.features.records.rules.filters import Narrowing
from ferry.features.records.spark.rows import record_rows
from ferry.model import TopicPartition


def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count the rows, as COUNT; all of their columns are made."""
    total = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_arrays([pa.array([total], pa.int64())], names=["records"])


Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a Python worker does with batches."""


def in_one_worker(*stages: Stage) -> Stage:
    """Join stages in one worker: each gets what the one before makes.

    A `mapInArrow` for each would start as many workers.
    """
    return partial(_in_turn, stages)


def _in_turn(stages: Sequence[Stage], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for stage in stages:
        batches = stage(batches)
    return iter(batches)


def read_apart(
    specs: Sequence[ReadSpec], schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Return the records of the pieces that the rows name by number.

    Raises Unread for all partitions that cannot be read on together, after the others are read.
    """
    unread: dict[TopicPartition, Failure] = {}

    def on_failure(place: TopicPartition, failure: Failure) -> None:
        unread.setdefault(place, failure)

    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from record_rows(specs[number], Narrowing(), schema, on_failure)
    if unread:
        raise Unread(unread)
