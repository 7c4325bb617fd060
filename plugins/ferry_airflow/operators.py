"""The tasks of a flow's DAG. Operators only hold strings at parse time; clusters and Spark are met in `execute`."""

from __future__ import annotations

import logging
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook, BaseOperator, Context
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowRuntimeError,
    AirflowSkipException,
)

from ferry.config.flow import FlowConfig
from ferry.errors import BadInput, FerryError
from ferry.model import Origin
from ferry.spark.job_end import FINAL, JobEnd, told_end
from ferry_airflow.connection import flow_of

KILL_GRACE_SECONDS = 4.0
"""Airflow kills a task 5 s after it asked it to end; by then nothing of Spark may be left."""

CONNECT = "spark_connect"
CLUSTER_MODE = "cluster"
EXIT_REFUSED = 2


class FerryOperator(BaseOperator):
    """A task of a flow's DAG: it holds the names of the file and of the flow, and asks them when it is executed."""

    template_fields = ("config", "flow")

    def __init__(self, *, config: str, flow: str, **kwargs: Any) -> None:
        """`config` is the path of the configuration file, `flow` is `source->target`."""
        super().__init__(**kwargs)
        self.config = config
        self.flow = flow


class FerryPlanOperator(FerryOperator):
    """Opens the run and seals its plan in the ledger; a run that has a plan keeps it."""

    def execute(self, context: Context) -> None:
        """Fails at once when the plan is impossible, and is retried when a cluster does not answer."""
        from ferry_airflow import steps, tables  # noqa: PLC0415 - Kafka's libraries only where they are used

        with _airflow_errors():
            flow, options = _flow(self), steps.options_of(context["params"])
            if context["params"].get("dry_run"):
                plan = steps.preview(flow, options)
            else:
                plan = steps.open_plan(flow, _run(context), _origin(context), options)
        for line in tables.plan_lines(plan):
            self.log.info("%s", line)


class FerryCopyOperator(SparkSubmitOperator):
    """Copies what the run's plan says: by spark-submit, or over a running Spark Connect server.

    The Spark connection decides which: type `spark` or `spark_connect`.
    """

    template_fields = (*SparkSubmitOperator.template_fields, "config", "flow")

    def __init__(self, *, config: str, flow: str, conn_id: str, **kwargs: Any) -> None:
        """`config` is the path of the configuration file, `flow` is `source->target`, `conn_id` a Spark connection.

        `kwargs` are SparkSubmitOperator's own, such as `executor_memory`, `py_files` or `conf`.
        """
        super().__init__(application=str(job_path()), conn_id=conn_id, name=f"ferry {flow}", **kwargs)
        self.config = config
        self.flow = flow
        self._connected = False

    def execute(self, context: Context) -> None:
        """Copies nothing, and starts no Spark, for a dry run, an empty plan or a run that is done."""
        if context["params"].get("dry_run"):
            raise AirflowSkipException("dry run: nothing is copied")
        from ferry_airflow import steps  # noqa: PLC0415 - Kafka's libraries only where they are used

        with _airflow_errors():
            flow = _flow(self)
            if steps.nothing_left(flow, _run(context)):
                self.log.info("nothing is left to copy in run %s of %s", _run(context), self.flow)
                return
        connection = _connection(self._conn_id)
        if connection.conn_type == CONNECT:
            self._copy_connected(flow, context)
        else:
            self._submit(connection, flow, context)

    def on_kill(self) -> None:
        """End the driver in order, so that it ends its open chunk; then make sure that nothing of Spark is left."""
        if self._connected:
            from ferry.spark.job import Terminated  # noqa: PLC0415 - as above

            self._connected = False
            raise Terminated  # in the midst of `copy_run`, which interrupts the job and ends the chunk
        from ferry_airflow.processes import end_job  # noqa: PLC0415 - as above

        submit = self._hook._submit_sp if self._hook is not None else None  # noqa: SLF001 - the hook has no other name
        if submit is not None and submit.poll() is None:
            end_job(submit.pid, self.application, grace_seconds=KILL_GRACE_SECONDS)
        if self._hook is not None:
            super().on_kill()

    def _submit(self, connection: Any, flow: FlowConfig, context: Context) -> None:
        from ferry.spark.handover import emptied, offered  # noqa: PLC0415 - as above
        from ferry.spark.lifeline import SUPERVISOR_VARIABLE, supervisor  # noqa: PLC0415 - as above
        from ferry.spark.package import zip_package  # noqa: PLC0415 - as above
        from ferry.spark.submit import submit_conf  # noqa: PLC0415 - as above

        master, deploy_mode = str(connection.host or ""), connection.extra_dejson.get("deploy-mode")
        if deploy_mode == CLUSTER_MODE and flow.connections:
            named = ", ".join(sorted(flow.connections.values()))
            raise AirflowFailException(
                f"flow {flow.flow} uses Airflow connection {named}, which a driver in the Spark cluster cannot be"
                f" handed: make the deploy mode of {self._conn_id!r} client"
            )
        origin = _origin(context)
        self.conf = {**submit_conf(), **(self.conf or {})}
        self.application_args = [
            *("--config", self.config, "--flow", self.flow, "--run", _run(context)),
            *("--dag-id", origin.dag_id, "--dag-run-id", origin.dag_run_id),
            *("--try-number", str(origin.try_number), "--host", origin.host),
        ]
        env = {str(key): str(value) for key, value in (self.env_vars or {}).items()}
        if deploy_mode != CLUSTER_MODE:
            env |= emptied(flow, os.environ)
            env[SUPERVISOR_VARIABLE] = supervisor()
            env.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ferry-")))
            end = folder / "end.json"
            if deploy_mode != CLUSTER_MODE:
                with _airflow_errors():
                    clients = stack.enter_context(offered(flow, folder / "clients"))
                self.application_args += ["--clients", str(clients), "--end", str(end)]
            if master.startswith("local"):
                env.setdefault("PYSPARK_PYTHON", os.environ.get("PYSPARK_PYTHON", sys.executable))
                env.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            elif not self.py_files:
                self.py_files = str(zip_package(folder / "ferry.zip"))
            self.env_vars = env
            try:
                super().execute(context)
            except AirflowException as error:
                submit = self._hook._submit_sp if self._hook is not None else None  # noqa: SLF001 - as above
                raise failed(error, told_end(end), submit.returncode if submit is not None else None) from None

    def _copy_connected(self, flow: FlowConfig, context: Context) -> None:
        from ferry.spark.copy_job import CopyRequest, copy_run  # noqa: PLC0415 - as above
        from ferry.spark.job import Terminated  # noqa: PLC0415 - as above
        from ferry.spark.session import connect  # noqa: PLC0415 - as above

        url = SparkConnectHook(self._conn_id).get_connection_url()
        request = CopyRequest(
            flow=flow,
            run=_run(context),
            origin=_origin(context),
            say=lambda text: self.log.info("%s", text),
        )
        try:
            with _airflow_errors():
                self._connected = True
                copy_run(request, lambda: connect(url))
        except Terminated:
            raise AirflowException("killed; what was committed stays") from None
        finally:
            self._connected = False


class FerryCheckpointOperator(FerryOperator):
    """Translates the offsets of consumer groups by what is copied; safe to repeat, and never ahead of the copy."""

    def execute(self, context: Context) -> None:
        """Prints what became of the groups. What stood against single ones fails the report, not this task."""
        if context["params"].get("dry_run"):
            raise AirflowSkipException("dry run: no group is touched")
        from ferry_airflow import steps, tables  # noqa: PLC0415 - as above

        with _airflow_errors():
            done = steps.checkpoint(_flow(self), _run(context))
        for line in tables.group_lines(done):
            self.log.info("%s", line)


class FerryReportOperator(FerryOperator):
    """Shows what became of the run, from the ledger alone; fails when anything was refused or is missing."""

    def execute(self, context: Context) -> None:
        """Prints a table; the error of a failing run names what was not copied and why."""
        from ferry_airflow import steps, tables  # noqa: PLC0415 - as above

        with _airflow_errors():
            flow = _flow(self)
            if context["params"].get("dry_run"):
                lines = tables.plan_lines(steps.preview(flow, steps.options_of(context["params"])))
                complaint = None
            else:
                report, newer = steps.report_of(flow, _run(context))
                lines = tables.report_lines(report)
                complaint = steps.complaint(report, newer, translates=flow.syncs_groups)
        for line in lines:
            self.log.info("%s", line)
        if complaint is not None:
            raise AirflowFailException(complaint)


def failed(error: AirflowException, told: JobEnd | None, code: int | None) -> AirflowException:
    """The task's error from the provider's: the job's own word, where it left one, else its exit code.

    One that a retry meets again fails at once.
    """
    sentence, final = (told.sentence, told.final) if told else (str(error), code == EXIT_REFUSED)
    return AirflowFailException(sentence) if final else AirflowException(sentence)


def job_path() -> Path:
    """The job's file: beside this package in a wheel, in `jobs/` of a checkout."""
    package = Path(__file__).parent
    for path in (package / "jobs" / "copy_job.py", package.parents[1] / "jobs" / "copy_job.py"):
        if path.exists():
            return path
    raise BadInput(f"the job file copy_job.py is not beside {package}: install Ferry's wheel anew")


def _connection(conn_id: str) -> Any:
    """The Spark connection; the provider would take a missing one for `yarn` without a word."""
    try:
        connection = BaseHook.get_connection(conn_id)
    except (AirflowNotFoundException, AirflowRuntimeError):
        raise AirflowFailException(
            f"Spark connection {conn_id!r} does not exist: create it (ferry airflow setup names what is missing), "
            "or name another in ferry.spark.conn.id"
        ) from None
    if connection.conn_type not in ("spark", CONNECT):
        raise AirflowFailException(
            f"connection {conn_id!r} is of type {connection.conn_type!r}: make it 'spark' or 'spark_connect'"
        )
    return connection


def _flow(operator: FerryOperator | FerryCopyOperator) -> FlowConfig:
    logging.getLogger("kafka").setLevel(logging.WARNING)  # it tells of every connection at INFO
    return flow_of(Path(operator.config), operator.flow)


def _run(context: Context) -> str:
    return str(context["run_id"])


def _origin(context: Context) -> Origin:
    return Origin(
        host=f"{socket.gethostname()}:{os.getpid()}",
        dag_id=str(context["dag"].dag_id),
        dag_run_id=_run(context),
        try_number=int(context["ti"].try_number),
    )


@contextmanager
def _airflow_errors() -> Iterator[None]:
    """Ferry's errors as Airflow's: those that a retry meets again fail at once."""
    try:
        yield
    except FINAL as error:
        raise AirflowFailException(str(error)) from None
    except FerryError as error:
        raise AirflowException(str(error)) from None
