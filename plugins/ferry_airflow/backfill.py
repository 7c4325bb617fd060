"""A DAG per flow whose runs are windows of history.

```
plan >> copy >> report
```

Airflow's own backfill makes a run for each window of its dates. A person makes one with a partition key, or with times
or offsets in the trigger form.

- `plan` settles what the window is in offsets and opens its first micro-run.
- `copy` makes as many micro-runs as the budgets ask for.
- `report` fails while something of the window is left. If the run has a partition key, it updates the assets of what
  is copied.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, Context, Param, TriggerRule
from airflow.sdk.exceptions import AirflowSkipException

from ferry.config.flow.flow import FlowConfig
from ferry.words import count_of
from ferry_airflow.assets import flow_alias, publish_by_alias
from ferry_airflow.base import (
    Copies,
    FerryOperator,
    airflow_errors,
    begun_run,
    final_failure,
    flow_named,
    is_dry_run,
    origin_of,
    run_of,
)
from ferry_airflow.copying import copy_on_spark
from ferry_airflow.form import TO_COPY, budget_params, flag, topics_param
from ferry_airflow.naming import backfill_dag_id, dag_id
from ferry_airflow.overrides import NOTHING, Overrides, ferry_dag
from ferry_airflow.report_link import RunLink
from ferry_airflow.spark_job import FerrySparkOperator
from ferry_airflow.timetable import WindowTimetable

if TYPE_CHECKING:
    from ferry_airflow.window_steps import Backfill

DEFAULT_LANE = "backfill-airflow"


class FerryWindowPlanOperator(FerryOperator):
    """Resolves the window and opens its first micro-run."""

    is_in_pool = True
    operator_extra_links = (RunLink(),)
    run_link = ""

    def execute(self, context: Context) -> None:
        """Fail at once for a window that cannot be copied; a dry run only shows what it is."""
        from ferry_airflow import tables, window_steps  # noqa: PLC0415 - Kafka's libraries only where they are used

        with airflow_errors():
            backfill = asked_backfill(self, context)
            if is_dry_run(context):
                plan = window_steps.preview(backfill)
            else:
                plan, look = window_steps.open_first(backfill, origin_of(context))
                self.log.info("window %s: %s left", backfill.options.window, count_of(look.left, "offset"))
        for line in tables.plan_lines(plan):
            self.log.info("%s", line)


class FerryWindowCopyOperator(FerrySparkOperator):
    """Copies the window, micro-run by micro-run."""

    job = "copy_job.py"
    killed = "killed; what was committed stays"
    is_in_pool = True
    operator_extra_links = (RunLink(),)
    run_link = ""

    def execute(self, context: Context) -> None:
        """Start Spark for each micro-run that has something to copy."""
        if is_dry_run(context):
            raise AirflowSkipException("dry run: nothing is copied")
        from ferry_airflow import window_steps  # noqa: PLC0415 - as above

        with airflow_errors():
            backfill = asked_backfill(self, context)

            def copy(run: str) -> None:
                copy_on_spark(self, backfill.flow, run, context, lane=backfill.lane)

            window_steps.copy_window(backfill, origin_of(context), copy, lambda text: self.log.info("%s", text))


class FerryWindowReportOperator(FerryOperator):
    """Shows the outcome of the window; fails while something of it is left."""

    operator_extra_links = (RunLink(),)
    run_link = ""

    def execute(self, context: Context) -> None:
        """Print a table for each micro-run; the error names what is left and why."""
        if is_dry_run(context):
            raise AirflowSkipException("dry run: nothing was copied")
        from ferry_airflow import tables, window_steps  # noqa: PLC0415 - as above

        with airflow_errors():
            backfill = asked_backfill(self, context)
            reports, look = window_steps.reports_of(backfill)
            complaint = window_steps.complaint(backfill, reports, look)
        for report in reports:
            for line in tables.report_lines(report):
                self.log.info("%s", line)
        records = sum(report.records for report in reports)
        self.log.info(
            "window %s: %s in %s, %s left",
            backfill.options.window,
            count_of(records, "record"),
            count_of(len(reports), "run"),
            count_of(look.left, "offset"),
        )
        if complaint is not None:
            raise final_failure(complaint)
        if self.outlets and context.get("partition_key"):
            topics = window_steps.copied_topics(reports)
            count = publish_by_alias(context, backfill.flow, backfill.lane_name, backfill.run, topics)
            self.log.info("the assets of %s on %s are updated", count_of(count, "topic"), backfill.flow.flow.target)


def backfill_dag(flow: FlowConfig, path: Path, windows: str, overrides: Overrides = NOTHING) -> DAG:
    """Return the DAG of the flow's windows; `windows` is a cron expression or preset: each tick begins one."""
    common: dict[str, Any] = {"config": str(path), "flow": str(flow.flow), "retries": flow.airflow.retries}
    # One run at a time also because windows of a partition come in order.
    with ferry_dag(
        backfill_dag_id(flow.flow),
        "backfill",
        flow.flow,
        overrides,
        form=_params(flow),
        description=f"Copies windows of history of {flow.flow.source} to {flow.flow.target}, each exactly once",
        doc_md=__doc__,
        schedule=WindowTimetable(windows, timezone="UTC"),
        is_paused_upon_creation=False,  # its timetable starts no run by itself
    ) as dag:
        plan = FerryWindowPlanOperator(task_id="plan", pool=flow.airflow.pool, **common)
        copy = FerryWindowCopyOperator(
            task_id="copy", conn_id=flow.airflow.spark_conn_id, pool=flow.airflow.pool, **common
        )
        report = FerryWindowReportOperator(
            task_id="report",
            trigger_rule=TriggerRule.ALL_DONE,
            outlets=[flow_alias(flow.flow)] if flow.airflow.updates_assets else None,
            **common,
        )
        plan >> copy >> report
    return dag


def asked_backfill(task: Copies, context: Context) -> Backfill:
    """Return the backfill that the form of the task's run, or the run's partition, asks for."""
    from ferry_airflow.window_steps import backfill_of  # noqa: PLC0415 - as above

    backfill = backfill_of(flow_named(task), run_of(context), context["params"], _partition(context))
    own = (dag_id if backfill.lane is None else backfill_dag_id)(backfill.flow.flow)
    return replace(backfill, run=begun_run(task, context, own, backfill.lane))


def _partition(context: Context) -> tuple[datetime, datetime] | None:
    """Return the window of the run's partition; None for a run that was made without a partition key."""
    start = context.get("partition_date")
    timetable = context["dag"].timetable
    if start is None or not isinstance(timetable, WindowTimetable):
        return None
    return start, timetable.end_of(start)


_OFFSET = "^[^:\\s]+:[0-9]+:[0-9]+$"


def _params(flow: FlowConfig) -> dict[str, Any]:
    """Return the trigger form; Airflow's backfill passes the same values as its run's conf."""
    offsets = "As topic:partition:offset, one per line, for example orders:3:1000."
    return {
        "lane": Param(
            DEFAULT_LANE,
            type="string",
            pattern="^(backfill|append)-[A-Za-z0-9][A-Za-z0-9_-]{0,39}$",
            title="Lane",
            description="Where the window goes: topics named {target topic}.backfill.{lane}. It is there from its "
            "first window on. append-NAME: after the records of the live topics.",
        ),
        "topics": topics_param(flow, *TO_COPY),
        "from": _time("From", "The first moment of the window; with a partition key leave it empty."),
        "to": _time("To", "The window ends before it."),
        "times": _lines(
            "Times of single topics",
            "Instead of both, one topic per line, for example orders=2026-01-01T00:00:00Z/2026-02-01T00:00:00Z.",
            "^[^=\\s]+=[^/\\s]+/[^/\\s]+$",
        ),
        "from_offsets": _lines("From offsets", f"{offsets} Instead of times.", _OFFSET),
        "to_offsets": _lines("To offsets", f"{offsets} The window ends before it; each partition needs both.", _OFFSET),
        "allow_deleted": flag(
            "Take what is left", "Copy the remaining records if the source may have deleted some of the window."
        ),
        "into_live": flag(
            "Into the live topics",
            "Instead of the lane, as a run of the live lane; refused if that has copied records.",
        ),
        **budget_params(),
    }


def _time(title: str, description: str) -> Param:
    return Param(None, type=["null", "string"], format="date-time", title=title, description=description)


def _lines(title: str, description: str, pattern: str) -> Param:
    items = {"type": "string", "pattern": pattern}
    return Param(None, type=["null", "array"], items=items, title=title, description=description)
