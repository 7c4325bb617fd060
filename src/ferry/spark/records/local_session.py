"""A Spark of this machine alone, for the command line."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ferry.errors import Refused
from ferry.spark.records.transform import prepare
from ferry.spark.session import REMOTE_VARIABLE, stop
from ferry.spark.submit import submit_conf

TRIES_OF_A_TASK = 4
"""As on a cluster; in local mode Spark tries a task once."""


@contextmanager
def local_session(name: str, *, cores: int = 1) -> Iterator[SparkSession]:
    """A session for transforms, whatever Spark the flow's runs use; it logs nothing. Refused where none starts."""
    os.environ.pop(REMOTE_VARIABLE, None)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # What Spark says of a query it does not understand is one sentence of ours.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    builder = SparkSession.builder.master(f"local[{cores},{TRIES_OF_A_TASK}]").appName(name)
    for key, value in {**submit_conf(), "spark.log.level": "OFF"}.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except PySparkException as error:
        raise Refused(
            f"no local Spark starts here ({error.getCondition()}): install Java 17, or set JAVA_HOME"
        ) from error
    try:
        prepare(spark)
        yield spark
    finally:
        stop(spark)
