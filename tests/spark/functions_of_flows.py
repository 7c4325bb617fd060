"""Functions of records that a file may name, and some that it may not."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody who writes Spark calls it

NUMBER = 3


def small(records: DataFrame) -> DataFrame:
    """Short values, in capitals."""
    return records.where("length(value) < 10").withColumn(
        "value", F.upper(F.col("value").cast("string")).cast("binary")
    )


def raises(_: DataFrame) -> DataFrame:
    """Fails."""
    raise KeyError("a table that is not there")
