"""The source's records as a DataFrame, read by tasks that each have a specification of what they read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ferry.features.records.acts.reading import ReadSpec
from ferry.features.records.spark.row_stage import Stage, in_one_worker, read_apart
from ferry.features.records.spark.schema import SCHEMA


def read_frame(spark: SparkSession, tasks: Sequence[ReadSpec], then: Stage, columns: StructType) -> DataFrame:
    """Return what `then` makes of what the tasks read, in the same worker. Nothing is read before an action.

    `then` gets the columns of the source `ferry`. Partitions that cannot be read on raise Unread together, at the end
    of the task.
    """
    read = partial(read_apart, list(tasks), to_arrow_schema(SCHEMA, timezone="UTC"))
    return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(in_one_worker(read, then), columns)
