"""The job whose Java classes go into Spark's class-data archive: a session, a Python stage over Arrow, a few rows back.

It does what the copy job asks of Spark, without Kafka. The more alike the two are, the more of the copy job's start-up
comes from the archive.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

SCHEMA = "slot int, payload string"


def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return one row for each row read, as the copy job returns one row for each receipt."""
    for batch in batches:
        slots = batch.column("slot").cast(pa.int32())
        yield pa.RecordBatch.from_arrays([slots, pa.array(["{}"] * len(slots))], names=["slot", "payload"])


def main() -> None:
    """Run two Python stages, one of them partitioned by a column, and end the session in order."""
    spark = SparkSession.builder.getOrCreate()
    frame = spark.createDataFrame([(0, "{}"), (1, "{}")], SCHEMA)
    frame.repartition(2, "slot").mapInArrow(stage, SCHEMA).collect()
    spark.range(2).selectExpr("cast(id as int) as slot").mapInArrow(stage, SCHEMA).collect()
    spark.stop()


if __name__ == "__main__":
    main()
