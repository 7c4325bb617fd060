"""Decides whether Spark compiles its work: that costs seconds, and pays if there is much to read."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from ferry.features.records.rules.ranges import ranges_of
from ferry.features.records.spark.streams import Stream

COMPILED_RECORDS = 500_000
"""From here on it pays: it takes 3 to 5 CPU-seconds, and saved ten of fifty for a million records (bench/README.md)."""


def compile_long_work(spark: SparkSession, streams: Sequence[Stream]) -> bool:
    """Let Spark compile its work from now on, if so many offsets pass through it. Return whether they do.

    It changes settings of `ferry.run.spark.submit` that a session may change. They change no result.
    """
    through = [piece for stream in streams for piece in stream.pieces if stream.plain is None or piece.dealt]
    if sum(end - start for start, end in ranges_of(through).values()) < COMPILED_RECORDS:
        return False
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    return True
