"""Spark sessions: started, tagged, interrupted and ended, in local mode, on a cluster and by Spark Connect."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody who writes Spark calls it

from ferry.run.spark.package import zip_package, zip_specs

REMOTE_VARIABLE = "SPARK_REMOTE"
CONNECT_VARIABLES = (REMOTE_VARIABLE, "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE", "SPARK_API_MODE")
"""What makes a new session one of Spark Connect. PySpark sets the second one, and leaves it after the session's end."""

_MANY_ROWS = 100_000
"""More than the cores of any Spark."""


def is_remote(spark: SparkSession) -> bool:
    """Return whether the session is one of Spark Connect, whose tasks do not end with this process."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def interrupt(spark: SparkSession, tag: str) -> None:
    with suppress(Exception):  # the JVM or the server may be gone; then there is nothing to interrupt
        spark.interruptTag(tag)


def stop(spark: SparkSession) -> None:
    with suppress(Exception):  # the JVM or the server may be gone
        spark.stop()


def gist(error: BaseException) -> str:
    """Return the line that shows what happened: the last one of the Python side, before the JVM's stack."""
    said = str(error).partition("JVM stacktrace:")[0].strip().splitlines()
    return said[-1].strip()[:300] if said else type(error).__name__


def connect(url: str) -> SparkSession:
    """Return a new session on the Spark Connect server at `url` (sc://...), and send this Ferry to its workers."""
    spark = SparkSession.builder.remote(url).create()
    with tempfile.TemporaryDirectory(prefix="ferry-") as folder:
        spark.addArtifacts(str(zip_package(Path(folder) / "ferry.zip")), pyfile=True)
    return spark


def session(name: str) -> SparkSession:
    remote = os.environ.get(REMOTE_VARIABLE)
    return connect(remote) if remote else SparkSession.builder.appName(name).getOrCreate()


def at_once(spark: SparkSession) -> int:
    """Return how many tasks Spark runs at the same time: it cuts a range into as many parts as it has cores."""
    parts = spark.range(_MANY_ROWS).select(F.spark_partition_id().alias("part")).agg(F.max("part")).collect()[0][0] + 1
    return max(1, int(parts) // int(spark.conf.get("spark.task.cpus", "1") or 1))


def slot_frame(spark: SparkSession, slots: Collection[int], tasks: int) -> DataFrame:
    """Return a row for each slot, column `slot`, over `tasks` partitions.

    `range` gives each partition its rows, and the array maps them to the slots' numbers.
    """
    numbers = F.array(*[F.lit(slot) for slot in slots])
    return spark.range(0, len(slots), 1, tasks).select(numbers[F.col("id").cast("int")].alias("slot"))


def sent_apart(spark: SparkSession, specs: Mapping[int, object]) -> str:
    """Send the specs of tasks as an artifact, and return the name under which `unpacked` finds it.

    It is for Spark Connect, whose server logs functions.
    """
    name = f"ferry_specs_{secrets.token_hex(8)}"
    with tempfile.TemporaryDirectory(prefix="ferry-") as folder:
        spark.addArtifacts(str(zip_specs(Path(folder) / f"{name}.zip", name, specs)), pyfile=True)
    return name
