"""A copy by this process as a client of a Spark Connect server, which another thread can end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from pyspark.sql import SparkSession

from ferry.errors import Retryable
from ferry.features.records.spark.copy_job import CopyRequest, copy_run
from ferry.model import Origin
from ferry.run.spark.session import connect
from ferry_airflow.cluster_settings import flow_of


class ConnectCopy:
    """One attempt to copy what a run has left."""

    def __init__(self, request: CopyRequest, url: str) -> None:
        """`url` is the server's (sc://…)."""
        self.request = request
        self.url = url
        self._ended = False
        self._spark: SparkSession | None = None

    @classmethod
    def of(
        cls, config: Path, flow: str, run: str, conn_id: str, origin: Origin, say: Callable[[str], None]
    ) -> ConnectCopy:
        """Read the file and Airflow's connections. Raises FerryError."""
        request = CopyRequest(flow=flow_of(config, flow), run=run, origin=origin, say=say)
        return cls(request, SparkConnectHook(conn_id).get_connection_url())

    def run(self) -> None:
        """Copy; raises what `copy_run` does, and Retryable after `end`."""
        copy_run(self.request, self._connect)

    def end(self) -> None:
        """End the copy's work on the server, so that `run` ends its open chunks; may be repeated.

        An operation that begins after this is ended by the next call.
        """
        self._ended = True
        if self._spark is not None:
            with suppress(Exception):  # the server may be gone; then there is nothing to end
                self._spark.interruptAll()

    def _connect(self) -> SparkSession:
        if self._ended:
            raise Retryable(f"the copy of run {self.request.run} was ended before it began: the run may be tried again")
        self._spark = connect(self.url)
        return self._spark
