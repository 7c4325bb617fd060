"""The tasks of a drill's DAG: show what it would do, ask an approver if it touches production, do it and report."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from ferry.features.evidence.rules.lines import report_lines_of
from ferry.words import count_of
from ferry_airflow.assets import publish
from ferry_airflow.base import FerryOperator, Named, airflow_errors, final_failure, is_dry_run, run_of
from ferry_airflow.cluster_settings import settings_for
from ferry_airflow.copying import copy_left
from ferry_airflow.naming import DRILL, IN_PRODUCTION, RUNS
from ferry_airflow.report_link import ReportLink
from ferry_airflow.spark_job import FerrySparkOperator
from ferry_airflow.switch_operators import (
    AskingOperator,
    approval_of,
    approver_named,
    asked_by,
    publish_drained,
    reason_of,
)

if TYPE_CHECKING:  # Kafka's libraries only where they are used
    from ferry_airflow.drilling import Asked


class DrillPreviewOperator(FerryOperator):
    """Shows what the drill would do, and checks that its report can be written; writes nothing else."""

    def execute(self, context: Context) -> str:
        """Print the lines to the log, and return them for the approver."""
        from ferry_airflow import drilling  # noqa: PLC0415 - Kafka's libraries only where they are used

        with airflow_errors():
            asked = _asked(self, context)
            drilling.reports_of(asked)
            lines = drilling.drill_of(asked).preview()
        for number, line in enumerate(lines, 1):
            self.log.info("%d. %s", number, line)
        return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


class DrillApprovalOperator(AskingOperator):
    """Asks an approver, if the drill touches production."""

    def execute(self, context: Context) -> Any:
        """Ask for as long as the trigger form allows; do not ask for a drill that does not touch production."""
        params = context["params"]
        if params["kind"] in IN_PRODUCTION or is_dry_run(context):
            return super().execute(context)
        self.log.info("a %s drill does not touch production: no approval is needed", params["kind"])
        return None


class RehearsalOperator(FerryOperator):
    """Does a drill that does not touch production: tabletop or shadow."""

    operator_extra_links = (ReportLink(),)
    report_link = ""
    _stopping: threading.Event | None = None

    def execute(self, context: Context) -> None:
        """Fail when not all was as it should be; what it found, and where the report is, is in its log and its XCom."""
        kind = context["params"]["kind"]
        if kind in IN_PRODUCTION:
            raise AirflowSkipException(f"a {kind} drill touches production: the task drill does it")
        self._stopping = threading.Event()
        with airflow_errors():
            asked = _asked(self, context)
        _do(self, context, asked, self._stopping)

    def on_kill(self) -> None:
        """Let the drill end its copying and remove what it made, as far as Airflow gives it the time."""
        if self._stopping is not None:
            self._stopping.set()


class DrillOperator(FerrySparkOperator):
    """Does a drill that an approver has approved: partial, or full, which copies in Spark."""

    job = "copy_job.py"
    killed = "killed; the switches of a full drill continue where they stopped"

    operator_extra_links = (ReportLink(),)
    report_link = ""
    _stopping: threading.Event | None = None

    def execute(self, context: Context) -> None:
        """Fail when not all was as it should be; what it found, and where the report is, is in its log and its XCom."""
        kind = context["params"]["kind"]
        if kind not in IN_PRODUCTION:
            raise AirflowSkipException(f"a {kind} drill does not touch production: the task rehearse does it")
        from ferry.run.ledger.access import LedgerAccess  # noqa: PLC0415 - as above

        self._stopping = threading.Event()
        runs: list[str] = []

        def opened(run: str) -> None:
            runs.append(run)
            context["ti"].xcom_push(key=RUNS, value=runs)

        # A full drill continues where its switches are; a partial one begins again, and needs a new approval.
        by = "the full drill" if kind == "full" else f"try {context['ti'].try_number} of the drill"
        with airflow_errors():
            asked = _asked(self, context)
            with LedgerAccess(asked.flow) as ledger:
                approval = approval_of(context, ledger, by)
            asked = replace(
                asked,
                approved_by=approver_named(approval),
                approved_ms=approval.at_ms,
                copy=lambda runs, plan: copy_left(self, runs, plan, context),
                opened=opened,
            )
        _do(self, context, asked, self._stopping)

    def on_kill(self) -> None:
        """End active work in an orderly way; the switches of a full drill can be continued."""
        if self._stopping is not None:
            self._stopping.set()
        super().on_kill()


class DrillAssetsOperator(FerryOperator):
    """Updates the assets of what a partial or full drill copied, even if the drill failed: the copy stays."""

    def execute(self, context: Context) -> None:
        """Send an event for each topic and run, as the flow's own runs do; skipped if nothing was copied."""
        from ferry_airflow import drilling, steps, switching  # noqa: PLC0415 - as above

        count = 0
        with airflow_errors():
            asked = _asked(self, context)
            for run in context["ti"].xcom_pull(task_ids=DRILL, key=RUNS) or ():
                count += publish(context, asked.flow, run, steps.copied_topics(asked.flow, run))
            for verb, switch in drilling.switches_to_drain(asked):
                with switching.switcher(self.config, self.flow, verb, str(context["dag"].dag_id)) as found:
                    count += publish_drained(context, found, switch)
        if not count:
            raise AirflowSkipException("the drill copied nothing in the live lane: no asset is updated")
        self.log.info("%s of assets", count_of(count, "event"))


def _asked(task: Named, context: Context) -> Asked:
    from ferry_airflow.drilling import Asked  # noqa: PLC0415 - as above

    settings = settings_for(Path(task.config), task.flow)
    return Asked(
        settings=settings,
        flow=settings.flow(task.flow),
        params=context["params"],
        who=f"{context['dag'].dag_id}@{socket.gethostname()}",
        run=run_of(context),
    )


def _do(task: RehearsalOperator | DrillOperator, context: Context, asked: Asked, stopping: threading.Event) -> None:
    from ferry_airflow import drilling  # noqa: PLC0415 - as above

    with airflow_errors():
        folder = drilling.reports_of(asked)
        drill = drilling.drill_of(asked)
        evidence, _ = drill.run(stopping.is_set, lambda text: task.log.info("%s", text))
        evidence = replace(evidence, asked_by=asked_by(context), reason=reason_of(context))
        for line in report_lines_of(evidence):
            task.log.info("%s", line)
        report = drilling.written(folder, evidence)
    task.log.info("%s", report.sentence)
    task.report_link = drilling.link_to(asked, report)
    # A task that fails returns nothing otherwise.
    context["ti"].xcom_push(key="return_value", value=drilling.returned(evidence, report))
    complaint = drilling.complaint(evidence, report)
    if complaint is not None:
        raise final_failure(complaint)
