"""The source's records as a DataFrame, and the stages of its tasks, joined in one worker.

`read_frame` makes the DataFrame. All else runs in Python workers, and uses nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ferry.features.records.acts.cutoffs import Failure, Unread
from ferry.features.records.acts.reading import ReadSpec
from ferry.features.records.rules.filters import Narrowing
from ferry.features.records.spark.rows import record_rows
from ferry.features.records.spark.schema import SCHEMA
from ferry.model import TopicPartition
from ferry.run.spark.columns import Stage


def read_frame(
    spark: SparkSession, reads: Sequence[ReadSpec], then: Stage, columns: StructType, tasks: int | None = None
) -> DataFrame:
    """Return what `then` makes of what is read, in the same worker. Nothing is read before an action.

    There is a task for each of `reads`, or so many `tasks` that have some each, one after the other. `then` gets the
    columns of the source `ferry`. Partitions that cannot be read on raise Unread together, at the end of the task.
    """
    read = partial(read_apart, list(reads), to_arrow_schema(SCHEMA, timezone="UTC"))
    return spark.range(0, len(reads), 1, tasks or max(1, len(reads))).mapInArrow(in_one_worker(read, then), columns)


def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count the rows, as COUNT; all of their columns are made."""
    total = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_arrays([pa.array([total], pa.int64())], names=["records"])


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
