"""The tasks of one micro-run. Operators only hold strings at parse time; `execute` uses clusters and Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context, TaskInstanceState
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowSkipException, TaskDeferralTimeout, TaskDeferred

from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.features.observe.settings import AlertSettings
from ferry.words import count_of
from ferry_airflow.assets import publish
from ferry_airflow.base import (
    FerryOperator,
    airflow_errors,
    final_failure,
    flow_named,
    is_dry_run,
    keep_reason,
    live_run,
    origin_of,
    run_of,
    sibling,
)
from ferry_airflow.copying import copy_on_spark, is_copied, job_arguments
from ferry_airflow.failing import Failure, FinalFailure
from ferry_airflow.naming import PLAN, REASON
from ferry_airflow.report_link import RunLink
from ferry_airflow.spark_job import FerrySparkOperator

if TYPE_CHECKING:  # Kafka's libraries only where they are used
    from ferry_airflow.steps import Reported


class FerryPlanOperator(FerryOperator):
    """Opens the run and seals its plan in the ledger; a run that has a plan keeps it."""

    is_in_pool = True
    operator_extra_links = (RunLink(),)
    run_link = ""

    def execute(self, context: Context) -> None:
        """Fail at once when the plan is impossible; Airflow retries when a cluster does not answer."""
        from ferry_airflow import steps, tables  # noqa: PLC0415 - Kafka's libraries only where they are used

        with airflow_errors():
            flow, options = flow_named(self), steps.options_of(context["params"])
            if is_dry_run(context):
                plan = steps.preview(flow, options)
            else:
                plan = steps.open_plan(flow, live_run(self, context), origin_of(context), options)
        for line in tables.plan_lines(plan):
            self.log.info("%s", line)


class FerryCopyOperator(FerrySparkOperator):
    """Copies what the run's plan has.

    A deferrable task waits in the triggerer over Spark Connect, and for a driver in the cluster whose state can be
    asked. Elsewhere it waits in its worker.
    """

    job = "copy_job.py"
    killed = "killed; what was committed stays"
    is_in_pool = True
    operator_extra_links = (RunLink(),)
    run_link = ""
    lineage: Any = None

    def __init__(
        self,
        *,
        config: str,
        flow: str,
        conn_id: str,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        """`deferrable` is as in Airflow's own operators; the other arguments are those of FerrySparkOperator."""
        super().__init__(config=config, flow=flow, conn_id=conn_id, **kwargs)
        self.deferrable = deferrable

    def execute(self, context: Context) -> None:
        """Copy; nothing is copied, and Spark is not started, for a dry run, an empty plan or a run that is done."""
        if is_dry_run(context):
            raise AirflowSkipException("dry run: nothing is copied")
        run = live_run(self, context)
        with airflow_errors():
            flow = flow_named(self)
        if is_copied(flow, run):
            self.log.info("nothing is left to copy in run %s of %s", run, self.flow)
            return
        ended = True
        try:
            copy_on_spark(self, flow, run, context)
        except TaskDeferred:
            ended = False
            raise
        finally:
            if ended:
                self._note_lineage(flow, run)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> None:
        """End the task after its wait in the triggerer: the event says how that ended, and the ledger what is copied.

        Raises FinalFailure for an error that a retry meets again, Failure for others. Raises TaskDeferred if another
        triggerer's copy of this try took over, and something is left.
        """
        run = live_run(self, context)
        self.name_driver(job_arguments(run))
        with airflow_errors():
            flow = flow_named(self)
        self._note_lineage(flow, run)
        if event.get("superseded"):
            if is_copied(flow, run):
                return
            if self._copies_now(flow, run, context):
                # Another triggerer has this trigger, too. This event has ended its copy, so the copy begins again.
                self.log.warning("%s: what is left is copied by a new attempt", event["error"])
                copy_on_spark(self, flow, run, context)
                return
        if "error" in event:
            keep_reason(event["error"])
            raise (FinalFailure if event["final"] else Failure)(event["error"])
        if "driver" not in event:
            return
        if event["succeeded"]:
            self.forget_driver(context)
            return
        state = f"driver {event['driver']} of run {run} ended as {event['state']}"
        if event["state"] is None:
            state = f"how driver {event['driver']} of run {run} ended is not known"
        if not is_copied(flow, run):
            sentence = f"{state}, and the ledger shows that something is left to copy: see the driver's log"
            keep_reason(sentence)
            raise Failure(sentence)
        self.log.warning("%s, but all of it is copied", state)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Continue after the wait; end the driver if the wait took longer than `execution_timeout`."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except TaskDeferralTimeout:
            self.name_driver(job_arguments(live_run(self, context)))
            self.end_kept_driver(context)
            raise

    def _copies_now(self, flow: FlowConfig, run: str, context: Context) -> bool:
        """Return whether this try began the newest attempt at the run, and not another task or `ferry run --resume`."""
        from ferry_airflow import steps  # noqa: PLC0415 - Kafka's libraries only where they are used

        own = origin_of(context)
        with airflow_errors():
            newest = steps.newest_copier(flow, run)
        return newest is not None and replace(newest, host=own.host) == own

    def _note_lineage(self, flow: FlowConfig, run: str) -> None:
        """Note what is committed, even by a copy that failed, for OpenLineage's events, if those are sent."""
        from ferry_airflow import lineage, steps  # noqa: PLC0415 - as above

        if not lineage.is_sent():
            return
        try:
            self.lineage = lineage.lineage_of(flow, steps.reported(flow, run).report)
        except Exception as error:  # an error here must not fail the copy
            self.log.warning("OpenLineage does not get what was copied: %s", error, exc_info=True)

    def get_openlineage_facets_on_complete(self, _: Any) -> Any:
        """Return an `OperatorLineage`, empty if nothing was to be copied; OpenLineage's provider calls this."""
        from airflow.providers.openlineage.extractors import OperatorLineage  # noqa: PLC0415 - an extra

        return OperatorLineage() if self.lineage is None else self.lineage

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> Any:
        """Return an `OperatorLineage` of what was committed; OpenLineage's provider calls this when the task failed."""
        return self.get_openlineage_facets_on_complete(task_instance)


class FerryCheckpointOperator(FerryOperator):
    """Translates the offsets of consumer groups by what is copied; safe to repeat, and never ahead of the copy."""

    is_in_pool = True
    operator_extra_links = (RunLink(),)
    run_link = ""

    def execute(self, context: Context) -> None:
        """Print the outcome of the groups. Groups that could not be translated fail the report, not this task."""
        if is_dry_run(context):
            raise AirflowSkipException("dry run: no group is touched")
        from ferry_airflow import steps, tables  # noqa: PLC0415 - as above

        run = live_run(self, context)
        with airflow_errors():
            flow = flow_named(self)
            done = steps.checkpoint(flow, run)
            copied = steps.copied_topics(flow, run) if self.outlets else []
        for line in tables.group_lines(done):
            self.log.info("%s", line)
        if copied:
            count = publish(context, flow, run, copied)
            self.log.info("the assets of %s on %s are updated", count_of(count, "topic"), flow.flow.target)


class FerryReportOperator(FerryOperator):
    """Shows the outcome of the run, from the ledger alone; fails when anything was refused or is missing."""

    operator_extra_links = (RunLink(),)
    run_link = ""

    def execute(self, context: Context) -> None:
        """Print a table and send metrics and alerts; a failing run's error names what was not copied and why.

        It is skipped as `plan` was: a task before the run may skip it.
        """
        from ferry.features.observe.acts.after_run import Published, publish_run  # noqa: PLC0415 - as above
        from ferry_airflow import metrics, steps, tables  # noqa: PLC0415 - as above
        from ferry_airflow.alerts import tell  # noqa: PLC0415 - as above

        published = Published()
        with airflow_errors():
            flow = flow_named(self)
            if is_dry_run(context):
                lines = tables.plan_lines(steps.preview(flow, steps.options_of(context["params"])))
                complaint = None
            else:
                found = self._reported(flow, context)
                report = found.report
                metrics.publish_stats(report, per_partition=flow.of(AlertSettings).metrics_per_partition)
                held = steps.groups_held(found, translates=flow.syncs_groups)
                lines = [*([held] if held else []), *tables.report_lines(report)]
                complaint = steps.complaint(found, translates=flow.syncs_groups)
                published = publish_run(flow, report, lag=metrics.are_sent(), in_airflow=True)
                if published.lags is not None:
                    metrics.publish_lag(flow, published.lags, published.at_ms)
        for line in lines:
            self.log.info("%s", line)
        tell(flow, published.alerts, context)
        if complaint is not None:
            raise final_failure(complaint)

    def _reported(self, flow: FlowConfig, context: Context) -> Reported:
        """Return the report with what became of its lane; a run without a plan fails with the reason of task `plan`."""
        from ferry_airflow import steps  # noqa: PLC0415 - as above

        try:
            return steps.reported(flow, live_run(self, context))
        except BadInput:
            plan = sibling(self, PLAN)
            why = context["ti"].xcom_pull(task_ids=plan, key=REASON) or self._not_begun(plan, context)
            if not why:
                raise
            raise final_failure(f"nothing was planned, so nothing was copied: {why}") from None

    def _not_begun(self, plan: str, context: Context) -> str:
        """Return why the task `plan` did not begin, empty if it did; a task that was skipped has this one skipped."""
        dag, run = str(context["dag"].dag_id), run_of(context)
        states = context["ti"].get_task_states(dag_id=dag, task_ids=[plan], run_ids=[run])
        state = states.get(run, {}).get(plan)
        if state == TaskInstanceState.SKIPPED:
            self.run_link = ""
            raise AirflowSkipException(f"task {plan} was skipped: there is no run to report")
        return f"a task before {plan} failed" if state == TaskInstanceState.UPSTREAM_FAILED else ""
