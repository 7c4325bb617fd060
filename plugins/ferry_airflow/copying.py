"""The copy of one micro-run as a job on Spark, for the DAGs of a flow, of its windows and of its switches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from ferry.config.flow.flow import FlowConfig
from ferry.errors import FerryError, Superseded
from ferry.model import sentence_of
from ferry_airflow.base import airflow_errors, origin_of
from ferry_airflow.copy_trigger import ConnectCopyTrigger
from ferry_airflow.spark_job import CONNECT, FerrySparkOperator

if TYPE_CHECKING:  # Kafka's libraries only where they are used
    from ferry.model import Plan
    from ferry.run.micro_run import MicroRuns


def copy_on_spark(
    task: FerrySparkOperator, flow: FlowConfig, run: str, context: Context, *, lane: str | None = None
) -> None:
    """Copy what the run's plan has, by the task's Spark connection; `lane` is None for the flow's own.

    With spark-submit, `submit` writes the connection data to a pipe in a temporary folder and has
    `jobs/copy_job.py` started. That calls `copy_run`, and leaves its error in a file of that folder. Over Spark Connect
    this process calls `copy_run`.

    Raises AirflowFailException for an error that a retry meets again, AirflowException for others. What the ledger
    shows counts more than the error of a driver in the Spark cluster, which cannot leave that here. A deferrable task
    raises TaskDeferred, where the copy needs no process of the worker: over Spark Connect, and for a driver in the
    cluster.
    """
    connection, origin = task.spark_connection(), origin_of(context)
    if connection.conn_type == CONNECT and task.deferrable:
        task.defer(
            trigger=ConnectCopyTrigger(
                config=task.config,
                flow=task.flow,
                run_id=run,
                conn_id=task._conn_id,  # noqa: SLF001 - the provider has no other name for it
                dag_id=origin.dag_id,
                dag_run_id=origin.dag_run_id,
                try_number=origin.try_number,
            ),
            method_name="execute_complete",
            timeout=task.time_left(context),
        )
    if connection.conn_type == CONNECT:
        from ferry.features.records.spark.copy_job import CopyRequest, copy_run  # noqa: PLC0415 - Spark only where it is used

        request = CopyRequest(flow=flow, run=run, origin=origin, lane=lane, say=lambda text: task.log.info("%s", text))
        task.over_connect(lambda connect: copy_run(request, connect))
        return
    origin_arguments = ["--dag-id", origin.dag_id, "--dag-run-id", origin.dag_run_id, "--host", origin.host]
    origin_arguments += ["--try-number", str(origin.try_number)]
    try:
        task.submit(connection, flow, context, job_arguments(run, lane), origin_arguments)
    except AirflowFailException:
        raise
    except AirflowException as error:
        if not (task.in_cluster and is_copied(flow, run, lane)):
            raise
        task.log.warning("all of run %s is copied, though its driver failed: %s", run, error)


def is_copied(flow: FlowConfig, run: str, lane: str | None = None) -> bool:
    """Return whether the ledger shows nothing that is left of a run; fails when a newer run has what is left."""
    from ferry_airflow import steps  # noqa: PLC0415 - Kafka's libraries only where they are used

    with airflow_errors():
        return steps.nothing_left(flow, run, lane)


def job_arguments(run: str, lane: str | None = None) -> list[str]:
    """Return the arguments of `copy_job.py` that name what it copies."""
    return ["--run", run, *([] if lane is None else ["--lane", lane])]


def copy_left(task: FerrySparkOperator, runs: MicroRuns, plan: Plan, context: Context) -> FerryError | None:
    """Copy what a run has left, by the Spark connection of its own flow (`ferry.features.switch.acts.drain.Copy`)."""

    task._conn_id = runs.flow.airflow.spark_conn_id  # noqa: SLF001 - the provider has no other name for it
    try:
        copy_on_spark(task, runs.flow, plan.run, context)
    except (AirflowException, Superseded) as error:
        if runs.superseded(plan) is None:
            raise
        return Superseded(sentence_of(error))
    return None
