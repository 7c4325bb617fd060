"""What every job on Spark does: read its arguments, load its flow, run, and end when it is ordered to."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ferry.config.flow.flow import FlowConfig
from ferry.config.login.environment import from_environment
from ferry.config.settings import load
from ferry.errors import FerryError, Retryable
from ferry.run.spark import parent_watch
from ferry.run.spark.blocking_call import Call
from ferry.run.spark.credentials_pipe import taken
from ferry.run.spark.job_end import Terminated, write_end
from ferry.run.spark.session import gist, interrupt, stop
from ferry.words import SAYS

CONFIG_VARIABLE = "FERRY_CONFIG"

GRACE_SECONDS = 8.0
"""How long the orderly end after SIGTERM may take before the process ends in any case."""

TERMINATED = 128 + signal.SIGTERM

Say = Callable[[str], None]
T = TypeVar("T")


def job_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser of the arguments that every job takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--config",
        type=Path,
        default=os.environ.get(CONFIG_VARIABLE),
        required=not os.environ.get(CONFIG_VARIABLE),
        help=f"configuration file; else the environment variable {CONFIG_VARIABLE}",
    )
    parser.add_argument("--clients", type=Path, help="pipe that hands the connection data over; else the file has it")
    parser.add_argument("--flow", required=True, help="source->target")
    return parser


def run_job(
    work: Callable[[FlowConfig, Say], int], *, config: Path, clients: Path | None, flow: str, end: Path | None = None
) -> int:
    """Do `work` for the flow and return its exit code, or that of the error that ended it; 143 for SIGTERM.

    It runs under spark-submit, or under plain Python if SPARK_REMOTE names a Spark Connect server. `clients` is the
    pipe in which a task passes the connection data; without it the file's is resolved here. `end` is the file in which
    an error is left for the task.
    """
    own = logging.StreamHandler()
    own.setFormatter(logging.Formatter(f"{SAYS}%(message)s"))
    logging.getLogger("ferry").addHandler(own)  # else the task takes its warnings for Spark's
    try:
        signal.signal(signal.SIGTERM, _terminate)
        parent_watch.watch(os.environ)  # it sends SIGTERM, perhaps at once
        found = load(config, from_environment).flow(flow)
        return work(found if clients is None else taken(found, clients), _say)
    except Terminated:
        _say("terminated")
        return TERMINATED
    except FerryError as error:
        if end is None or not write_end(end, error):
            _say(str(error))  # else the task prints it
        return error.exit_code
    finally:
        logging.getLogger("ferry").removeHandler(own)


def on_spark(
    connect: Callable[[], SparkSession],
    tag: str,
    work: Callable[[SparkSession], T],
    *,
    what: str,
    broken: Callable[[], None] = lambda: None,
) -> T:
    """Return what `work` returns on a session of its own; `tag` marks its operations.

    However it is interrupted, its operations are interrupted and `broken` is called before the session ends. Raises
    Retryable when Spark failed in `what`.
    """
    spark = connect()

    def tagged() -> T:
        spark.addTag(tag)  # tags belong to the thread that sets them
        return work(spark)

    try:
        return Call(tagged).result()
    except BaseException as error:
        interrupt(spark, tag)
        broken()
        if isinstance(error, (PySparkException, Py4JError)):
            raise Retryable(f"Spark failed on {what} ({gist(error)}): see its log") from error
        raise
    finally:
        stop(spark)


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    deadline = threading.Timer(GRACE_SECONDS, os._exit, (TERMINATED,))
    deadline.daemon = True
    deadline.start()
    raise Terminated


def _say(text: str) -> None:
    with suppress(OSError):  # after the JVM's end no process reads; what is left to do matters more
        print(f"{SAYS}{text}", flush=True)
