"""The source's records as a DataFrame, read by tasks of which each says itself what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from ferry.features.records.acts.reading import ReadSpec
from ferry.features.records.spark.schema import SCHEMA
from ferry.features.records.spark.unit_stage import Stage, one_after_the_other, read_apart, read_pieces


def read_frame(spark: SparkSession, tasks: Sequence[ReadSpec], then: Stage | None = None) -> DataFrame:
    """What the tasks read, in the columns of the source `ferry`; nothing is read before an action.

    With `then` it goes through that, in the same worker, and partitions that cannot be read on end it together, as
    `read_apart` says.
    """
    schema = to_arrow_schema(SCHEMA, timezone="UTC")
    read: Stage = partial(read_pieces, list(tasks), schema)
    if then is not None:
        read = partial(one_after_the_other, partial(read_apart, list(tasks), schema), then)
    return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(read, SCHEMA)
