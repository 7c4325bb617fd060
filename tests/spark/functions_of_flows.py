"""Functions of records that a file may name, and some that it may not."""

import os
import time

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody who writes Spark calls it
from pyspark.sql.types import BinaryType

NUMBER = 3


def small(records: DataFrame) -> DataFrame:
    """Short values, in capitals."""
    return records.where("length(value) < 10").withColumn(
        "value", F.upper(F.col("value").cast("string")).cast("binary")
    )


def raises(_: DataFrame) -> DataFrame:
    """Fails."""
    raise KeyError("a table that is not there")


@F.udf(BinaryType())
def _known(value: bytes | None) -> bytes | None:
    if value == b"bad":
        raise KeyError(f"no such thing as {value!r}")
    return value


def breaks(records: DataFrame) -> DataFrame:
    """Raises in a task, at a value that it does not know."""
    return records.withColumn("value", _known("value"))


@F.udf(BinaryType())
def _fatal(value: bytes | None) -> bytes | None:
    if value == b"bad":
        os._exit(1)
    return value


def dies(records: DataFrame) -> DataFrame:
    """Ends the worker that it runs in."""
    return records.withColumn("value", _fatal("value"))


@F.udf(BinaryType())
def _slow(value: bytes | None) -> bytes | None:
    time.sleep(float(value or b"0"))
    return value


def sleeps(records: DataFrame) -> DataFrame:
    """Takes as many seconds for a record as its value says."""
    return records.withColumn("value", _slow("value"))


@F.udf(BinaryType())
def _waits(value: bytes | None) -> bytes | None:
    time.sleep(float(os.environ.get("TEST_FUNCTION_SECONDS", "0")))
    return value


def waits(records: DataFrame) -> DataFrame:
    """Takes as long for a record as the environment of the process says."""
    return records.withColumn("value", _waits("value"))
