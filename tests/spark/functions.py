"""Functions of records as somebody would write them for `selected_by`."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody who writes Spark calls it


def upper(records: DataFrame) -> DataFrame:
    """A value in capitals, of records with even offsets."""
    return records.where("offset % 2 = 0").withColumn("value", F.upper(F.col("value").cast("string")).cast("binary"))


def drawn(records: DataFrame) -> DataFrame:
    """Some of them, by lot."""
    return records.where(F.rand() < 0.5)


def counted(records: DataFrame) -> DataFrame:
    """Not records any more."""
    return records.groupBy("partition").count()


def shifted(records: DataFrame) -> DataFrame:
    """With offsets of their own."""
    return records.withColumn("offset", F.col("offset") + 1)


def nothing(records: DataFrame) -> None:
    """Nothing at all."""
