"""A local Spark session for the command line."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ferry.errors import FerryError, Refused, Retryable
from ferry.features.records.spark.transform import prepare
from ferry.jvm import LEAST_JAVA, java_version
from ferry.run.spark.session import CONNECT_VARIABLES, stop
from ferry.run.spark.submit import submit_conf

_GATEWAY_EXITED = "JAVA_GATEWAY_EXITED"
TRIES_OF_A_TASK = 4
"""Spark's default on a cluster; in local mode Spark tries a task once."""


def not_started(error: PySparkException) -> FerryError:
    """Return why no local Spark started: Refused if there is no Java 17 or later for it, else Retryable."""
    condition = error.getCondition()
    if condition != _GATEWAY_EXITED:
        return Retryable(f"no local Spark starts here ({condition}): see what Spark printed, then run again")
    found = java_version()
    if found is None or found < LEAST_JAVA:
        there = "no java command starts" if found is None else f"java is of version {found}"
        return Refused(
            f"no local Spark starts here, because {there}: install Java {LEAST_JAVA}, or set JAVA_HOME to it"
        )
    code = _exit_code(error)
    how = "ended"
    if code is not None:
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return Retryable(
        f"no local Spark starts here: its JVM {how} before it was ready; Java {found} is there, so see what ended it "
        "(memory?), then run again"
    )


def _exit_code(error: BaseException) -> int | None:
    """Return the exit code of the process that PySpark began; PySpark keeps it nowhere but in its own frame."""
    trace = error.__traceback__
    while trace is not None:
        process = trace.tb_frame.f_locals.get("proc")
        if isinstance(process, subprocess.Popen):
            return process.poll()
        trace = trace.tb_next
    return None


@contextmanager
def local_session(name: str, *, cores: int = 1) -> Iterator[SparkSession]:
    """Open a session for transforms, whatever Spark the flow's runs use; it logs nothing.

    Raises Refused if there is no Java 17 or later, Retryable if Spark does not start for another reason.
    """
    for variable in CONNECT_VARIABLES:
        os.environ.pop(variable, None)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Ferry reports a query that Spark does not understand in one sentence.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    builder = SparkSession.builder.master(f"local[{cores},{TRIES_OF_A_TASK}]").appName(name)
    for key, value in {**submit_conf(), "spark.log.level": "OFF"}.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except PySparkException as error:
        raise not_started(error) from error
    try:
        prepare(spark)
        yield spark
    finally:
        stop(spark)
