"""The copy of one micro-run as a job on Spark, for the DAG of a flow and that of its windows."""

from __future__ import annotations

from airflow.sdk import Context

from ferry.config.flow.flow import FlowConfig
from ferry_airflow.base import origin_of
from ferry_airflow.spark_job import CONNECT, FerrySparkOperator


def copy_on_spark(
    task: FerrySparkOperator, flow: FlowConfig, run: str, context: Context, *, lane: str | None = None
) -> None:
    """Copy what the run's plan says, as the task's Spark connection has it; `lane` is None for the flow's own.

    Raises AirflowException, AirflowFailException for what a retry meets again.
    """
    connection, origin = task.spark_connection(), origin_of(context)
    if connection.conn_type == CONNECT:
        from ferry.spark.copy_job import CopyRequest, copy_run  # noqa: PLC0415 - Spark only where it is used

        request = CopyRequest(flow=flow, run=run, origin=origin, lane=lane, say=lambda text: task.log.info("%s", text))
        task.over_connect(lambda connect: copy_run(request, connect))
        return
    named = [] if lane is None else ["--lane", lane]
    evidence = ["--dag-id", origin.dag_id, "--dag-run-id", origin.dag_run_id, "--host", origin.host]
    evidence += ["--try-number", str(origin.try_number)]
    task.submit(connection, flow, context, ["--run", run, *named, *evidence])
