"""Functions of records as somebody would write them for `selected_by`."""

import tempfile

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody who writes Spark calls it

from ferry.features.records.spark.selection import selected


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


def heedless(records: DataFrame) -> DataFrame:
    """With names told apart by their case from now on, for whoever comes behind."""
    records.sparkSession.conf.set("spark.sql.caseSensitive", "true")
    return records


def elsewhere(records: DataFrame) -> DataFrame:
    """With times of another place from now on."""
    records.sparkSession.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    return records


def nothing(records: DataFrame) -> None:
    """Nothing at all."""


def beside_a_table(records: DataFrame) -> DataFrame:
    """By SQL where the catalog has a table called records, of which none is asked."""
    spark = records.sparkSession
    with tempfile.TemporaryDirectory() as folder:
        spark.sql(f"CREATE TABLE records (x INT) USING csv LOCATION '{folder}'")
        try:
            return selected(records, "SELECT * FROM records")
        finally:
            spark.sql("DROP TABLE records")


def beside_a_view(records: DataFrame) -> DataFrame:
    """By SQL where somebody else calls his own records so."""
    records.limit(0).createTempView("records")
    try:
        return selected(records, "SELECT * FROM records")
    finally:
        records.sparkSession.catalog.dropTempView("records")


def internal(records: DataFrame) -> DataFrame:
    """Not understood, in a way that Spark has no sentence for."""
    return records.selectExpr("*", "value:x AS y")


def unnamed(records: DataFrame) -> DataFrame:
    """Of a column that is not there."""
    return records.select("*", "no_such_column")
