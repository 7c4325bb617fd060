"""What somebody writes in a notebook who delivers frames of his own; called by name in the notebook's process."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody who writes Spark calls it

from ferry.features.sink.spark.sink import write
from ferry.model.delivery import Written


def _told(written: Written) -> dict[str, Any]:
    return {"already": written.already, "parts": [list(part) for part in written.parts]}


def given(
    spark: SparkSession, *, rows: str, options: dict[str, str], settings: dict[str, str] | None = None, **arguments: Any
) -> dict[str, Any]:
    """The rows of an SQL query, in a session with these settings."""
    for name, value in (settings or {}).items():
        spark.conf.set(name, value)
    try:
        return _told(write(spark.sql(rows), to=options, **arguments))
    finally:
        for name in settings or {}:
            spark.conf.unset(name)


def drawn(spark: SparkSession, *, options: dict[str, str], **arguments: Any) -> dict[str, Any]:
    """A frame that gives something else each time."""
    frame = spark.range(50).select(
        F.uuid().cast("binary").alias("value"), F.lit(5).cast("bigint").alias("timestamp"), F.lit(None).alias("key")
    )
    return _told(write(frame.drop("key"), to=options, **arguments))


def copied(spark: SparkSession, *, of: str, options: dict[str, str], **arguments: Any) -> dict[str, Any]:
    """What a topic has, as the source reads it, in the order of its offsets, dealt anew by the key."""
    frame = spark.read.format("ferry").options(**options).load(of).drop("topic", "partition")
    return _told(write(frame, to=options, order_by=["offset"], **arguments))


def large(spark: SparkSession, *, count: int, options: dict[str, str], **arguments: Any) -> dict[str, Any]:
    """Numbers as keys, with a kilobyte each."""
    number = F.col("id").cast("string")
    frame = spark.range(count).select(
        number.alias("key"),
        F.rpad(number, 1000, ".").alias("value"),
        (F.col("id") + 1_700_000_000_000).alias("timestamp"),
    )
    return _told(write(frame, to=options, **arguments))


def streamed(
    spark: SparkSession,
    *,
    folder: str,
    checkpoint: str,
    fails_behind: int,
    options: dict[str, str],
    topic: str,
    application: str,
) -> dict[str, Any]:
    """Lines of files, a file for each micro-batch; the stream fails behind the batch of this number, once written."""
    told: list[list[Any]] = []

    def deliver(frame: DataFrame, batch: int) -> None:
        records = frame.select(F.col("value"), F.lit(7).cast("bigint").alias("timestamp"))
        written = write(records, to=options, topics=[topic], application=application, batch=batch)
        told.append([batch, written.already, written.records])
        if batch == fails_behind:
            raise OSError("as if somebody had killed the driver here")

    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(folder)
    query = (
        lines.writeStream.foreachBatch(deliver)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    except Exception as error:
        return {"told": told, "failed": str(error)[:300]}
    return {"told": told, "failed": ""}


def not_in_foreach_batch(
    spark: SparkSession, *, rows: str, options: dict[str, str], **arguments: Any
) -> dict[str, Any]:
    """A stream itself, without foreachBatch; `rows` are not asked for."""
    del rows
    return _told(write(spark.readStream.format("rate").load(), to=options, **arguments))


def documented(spark: SparkSession, *, code: str) -> dict[str, Any]:
    """A program of the documents; what it leaves as `written`."""
    names: dict[str, Any] = {"spark": spark}
    exec(code, names)
    answer: dict[str, Any] = json.loads(json.dumps(_told(names["written"])))
    return answer
