"""The task that writes offsets of consumer groups between micro-runs."""

from __future__ import annotations

from airflow.sdk import Context

from ferry_airflow.base import FerryOperator, airflow_errors, final_failure, flow_named, run_of
from ferry_airflow.naming import groups_dag_id, sync_id
from ferry_airflow.report_link import ResultLink, result_on_page


class FerrySyncGroupsOperator(FerryOperator):
    """Writes the offsets of consumer groups by what is copied now, also while a micro-run copies; needs no Spark."""

    operator_extra_links = (ResultLink(),)
    run_link = ""

    def execute(self, context: Context) -> None:
        """Return the outcome, and fail when a group that was to be written failed.

        A flow that is paused or is being planned, or has no run yet, is left alone: the outcome has the reason.
        """
        from ferry_airflow import syncing  # noqa: PLC0415 - Kafka's libraries only where they are used

        run = sync_id(str(context["dag"].dag_id), self.task_id, run_of(context))
        with airflow_errors():
            flow = flow_named(self)
            own = groups_dag_id(flow.flow)
            self.run_link = result_on_page(flow.flow, str(context["dag"].dag_id), own, run_of(context))
            synced = syncing.sync(flow, run, context["params"])
        for line in synced.lines:
            self.log.info("%s", line)
        context["ti"].xcom_push(key="return_value", value=synced.body)  # a task that fails returns nothing otherwise
        if synced.complaint is not None:
            raise final_failure(synced.complaint)
