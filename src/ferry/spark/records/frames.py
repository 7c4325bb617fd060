"""The source's records as a DataFrame, read by tasks of which each says itself what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from ferry.run.records.reading import ReadSpec
from ferry.spark.records.schema import SCHEMA
from ferry.spark.records.unit_stage import read_pieces


def read_frame(spark: SparkSession, tasks: Sequence[ReadSpec]) -> DataFrame:
    """What the tasks read, in the columns of the source `ferry`; nothing is read before an action."""
    read = partial(read_pieces, list(tasks), to_arrow_schema(SCHEMA, timezone="UTC"))
    return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(read, SCHEMA)
