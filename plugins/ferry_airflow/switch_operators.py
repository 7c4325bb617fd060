"""The tasks of a switch's DAG: show what will happen, ask an approver, open the switch, one task per step, report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.exceptions import HITLTimeoutError
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.execution_time.comms import CreateHITLDetailPayload, HITLDetailRequestResult
from airflow.sdk.execution_time.hitl import HITLUser

from ferry.config.flow.report import ReportConfig
from ferry.features.switch.settings import Approvers
from ferry.model import Flow
from ferry.model.switch import Approval, Step, SwitchOptions, SwitchState, Verb, next_step
from ferry.words import count_of
from ferry_airflow.approving import digest_of_params, question, trouble_with
from ferry_airflow.assets import publish
from ferry_airflow.base import FerryOperator, airflow_errors, final_failure, flow_named, is_dry_run, run_of
from ferry_airflow.copying import copy_left
from ferry_airflow.measures import APPROVAL_SECONDS, flag_of, seconds_of
from ferry_airflow.report_link import ReportLink, place_on_page
from ferry_airflow.spark_job import FerrySparkOperator
from ferry_airflow.task_log import QuietLog

if TYPE_CHECKING:  # Kafka's libraries only where they are used
    from ferry.features.switch.acts.drain import Copy
    from ferry.features.switch.acts.switcher import Switcher
    from ferry.run.ledger.access import LedgerAccess

PREVIEW, APPROVE, OPEN, ASSETS, REPORT = "preview", "approve", "open", "assets", "report"


class OfSwitch:
    """What every task of a switch's DAG has: the flow, the verb, and the switch that the DAG run is about."""

    config: str
    flow: str
    verb: str

    def switcher(self, context: Context, copy: Copy | None = None) -> Switcher:
        """Return the switcher, which connects when it is entered; `copy` copies what is left, None: on this machine."""
        from ferry_airflow.switching import switcher  # noqa: PLC0415 - Kafka's libraries only where they are used

        removes = flag_of(context["params"], "remove_write_block")
        dag_id = str(context["dag"].dag_id)
        return switcher(self.config, self.flow, Verb(self.verb), dag_id, copy, remove_write_block=removes)

    def id(self, context: Context) -> str:
        """Return the switch that the DAG run is about."""
        from ferry_airflow.switching import switch_id  # noqa: PLC0415 - as above

        return switch_id(run_of(context), context["params"])

    def asked(self, context: Context, found: Switcher) -> SwitchOptions:
        """Return what the trigger form asks for; for a switch that is open already, the ledger's options."""
        from ferry_airflow.switching import asked_for, options_of, refuse_other_export  # noqa: PLC0415 - as above

        switch, params, reports = self.id(context), context["params"], self._reports(found)
        known = found.states().get(switch)
        if known is not None:
            refuse_other_export(known.switch.options, reports)
            return options_of(params)
        return asked_for(params, found.verb, switch, reports)

    def refuse_other_places(self, found: Switcher, switch: str) -> None:
        """Raise BadInput for a switch of the ledger that would write a file where the flow's file allows none."""
        from ferry_airflow.switching import refuse_other_export  # noqa: PLC0415 - as above

        state = found.states().get(switch)
        if state is not None:
            refuse_other_export(state.switch.options, self._reports(found))

    def _reports(self, found: Switcher) -> ReportConfig:
        """Return where reports of the flow go that clients go along, with the places of the opposite flow."""
        via, back = found.sides.via.report, found.sides.back
        return via if back is None else replace(via, dirs=(*via.dirs, back.report.folder, *back.report.dirs))


class SwitchOperator(OfSwitch, FerryOperator):
    """A task of a switch's DAG."""

    def __init__(self, *, verb: str, **kwargs: Any) -> None:
        """`verb` is switchover, failover or failback."""
        super().__init__(**kwargs)
        self.verb = verb


class SwitchPreviewOperator(SwitchOperator):
    """Shows the steps and the checks; fails when a check refuses the switch. Writes nothing."""

    def execute(self, context: Context) -> str:
        """Print the lines to the log, and return them for the approver."""
        from ferry_airflow import switching  # noqa: PLC0415 - as above

        with airflow_errors():
            with self.switcher(context) as found:
                preview = found.preview(self.id(context), self.asked(context, found))
            lines = switching.preview_lines(preview)
            for line in lines:
                self.log.info("%s", line)
            switching.refuse_unready(preview)
        return "\n".join(f"- {line}" for line in lines)


class AskingOperator(QuietLog, ApprovalOperator):
    """Asks an approver, under Required Actions, and keeps the answer in the ledger: it is Airflow's own, and no XCom.

    A refusal, or no answer in time, has changed nothing.
    """

    template_fields = ("subject", "config", "flow")

    def __init__(self, *, config: str, flow: str, approvers: Approvers, **kwargs: Any) -> None:
        """`approvers` are the users who may answer."""
        users = [HITLUser(id=user, name=user) for user in approvers.users]
        super().__init__(assigned_users=users or None, **kwargs)
        self.config = config
        self.flow = flow
        self.approvers = approvers

    @contextmanager
    def ledger(self, context: Context) -> Iterator[LedgerAccess]:
        """Yield the ledger that keeps the answer: the flow's."""
        from ferry.run.ledger.access import LedgerAccess  # noqa: PLC0415 - as above

        with LedgerAccess(flow_named(self)) as ledger:
            yield ledger

    def execute(self, context: Context) -> Any:
        """Ask for as long as the trigger form allows; a dry run does not ask."""
        params = context["params"]
        if is_dry_run(context):
            raise AirflowSkipException("dry run: nothing is done")
        with airflow_errors():
            self.response_timeout = timedelta(seconds=_approval_seconds(params))
        preview = str(context["ti"].xcom_pull(task_ids=PREVIEW) or "")
        self.body = question(preview, asked_by(context) or "no user that Airflow knows", reason_of(context))
        self.refuse_earlier_question(context)
        return super().execute(context)

    def refuse_earlier_question(self, context: Context) -> None:
        """Fail if Airflow would ask what an earlier try of this task has asked: it keeps the first question of a task.

        Airflow's own call stores the question, too, and drops what is stored afterwards.
        """
        from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS  # noqa: PLC0415 - set when a task runs

        asked = CreateHITLDetailPayload.model_validate(
            {
                "ti_id": context["ti"].id,
                "options": self.options,
                "subject": self.subject,
                "body": self.body,
                "params": self.serialized_params,
                "assigned_users": self.assigned_users or [],
            }
        )
        stored: Any = SUPERVISOR_COMMS.send(msg=asked)
        if _asks(stored) != _asks(asked):
            raise final_failure(
                f"Airflow still has the question of an earlier try of the task {self.task_id}, with another preview or"
                " other approvers: nothing was done; trigger the DAG again"
            )

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Keep the answer, with who gave it and when; without an approval in time the task fails at once."""
        from ferry.features.switch.acts.approvals import keep_approval  # noqa: PLC0415 - as above

        try:
            answer = super().execute_complete(context, event)
        except HITLTimeoutError:
            raise final_failure("there was no approval in time: nothing was done; trigger the DAG again") from None
        if event["chosen_options"] != [self.APPROVE]:
            return answer
        user, at = event["responded_by_user"], event["responded_at"]
        trouble = trouble_with(user, asked_by(context), self.approvers)
        if trouble is not None:
            raise final_failure(
                f"{trouble}; nothing was done: clear this task to ask the same again, or trigger the DAG again"
            )
        moment = at if isinstance(at, datetime) else datetime.fromisoformat(at)
        approval = Approval(
            run=_run_of_dag(context),
            who=str(user["name"] or user["id"]),
            at_ms=int(moment.timestamp() * 1000),
            asked_by=asked_by(context),
            params=digest_of_params(context["params"]),
        )
        with airflow_errors(), self.ledger(context) as ledger:
            keep_approval(ledger, approval)
        return answer


class SwitchApprovalOperator(OfSwitch, AskingOperator):
    """Asks whether a switch is to be done."""

    def __init__(self, *, verb: str, **kwargs: Any) -> None:
        """`verb` is switchover, failover or failback."""
        super().__init__(**kwargs)
        self.verb = verb

    @contextmanager
    def ledger(self, context: Context) -> Iterator[LedgerAccess]:
        """Yield the ledger of the switch."""
        with self.switcher(context) as found:
            yield found.ledger


def _asks(question: CreateHITLDetailPayload | HITLDetailRequestResult) -> tuple[str | None, frozenset[str]]:
    """Return what a person is shown, and which users may answer."""
    return question.body, frozenset(user.id for user in question.assigned_users or ())


def asked_by(context: Context) -> str:
    """Return who triggered the run, as Airflow names users; empty if it does not report it."""
    return str(getattr(context["dag_run"], "triggering_user_name", None) or "")


def reason_of(context: Context) -> str:
    """Return why the run was triggered, by its form; empty without a reason."""
    return str(context["params"].get("reason") or "").strip()


def _run_of_dag(context: Context) -> str:
    return f"{context['dag'].dag_id}/{run_of(context)}"


def approval_of(context: Context, ledger: LedgerAccess, by: str) -> Approval:
    """Return what was approved of this run, used `by` a switch or a try of a drill from here on.

    Raises Refused without an approval, or for one of other parameters, one that was used already, or one that has
    expired.
    """
    from ferry.features.switch.acts.approvals import use_approval  # noqa: PLC0415 - as above

    params = context["params"]
    within = _approval_seconds(params)
    return use_approval(ledger, _run_of_dag(context), params=digest_of_params(params), by=by, within_s=within)


def _approval_seconds(params: Mapping[str, Any]) -> float:
    return float(seconds_of(params, "approval_timeout_seconds", APPROVAL_SECONDS))


def approver_named(approval: Approval) -> str:
    """Return who approved, and how that is known."""
    return f"{approval.who} (answered in Airflow)"


class SwitchOpenOperator(SwitchOperator):
    """Opens the switch in the ledger with who approved it and when, as Airflow recorded it."""

    def execute(self, context: Context) -> None:
        """Open the switch; opening one that is open already changes nothing."""
        with airflow_errors(), self.switcher(context) as found:
            switch = self.id(context)
            approval = approval_of(context, found.ledger, f"{self.verb} {switch}")
            who = approver_named(approval)
            state = found.open(switch, self.asked(context, found), who, approved_ms=approval.at_ms)
        self.log.info("%s %s is open, approved by %s", self.verb, state.switch.id, state.switch.approved_by)


class SwitchStepOperator(SwitchOperator):
    """Does one step of the switch; one that is done already is not repeated."""

    def __init__(self, *, step: str, **kwargs: Any) -> None:
        """`step` is the step's word."""
        super().__init__(**kwargs)
        self.step = step

    def execute(self, context: Context) -> None:
        """Do the step; what it found is in the log, and in the ledger."""
        from ferry_airflow.switching import step_lines  # noqa: PLC0415 - as above

        with airflow_errors(), self.switcher(context) as found:
            if self.step == Step.STRANDED:
                self.refuse_other_places(found, self.id(context))
            lines = step_lines(found.step(self.id(context), Step(self.step)), Step(self.step))
        for line in lines:
            self.log.info("%s", line)


class SwitchDrainOperator(OfSwitch, FerrySparkOperator):
    """The step that copies what is left, in Spark, as the flow's own runs do."""

    job = "copy_job.py"
    killed = "killed; what was committed stays"

    def __init__(self, *, verb: str, **kwargs: Any) -> None:
        """`verb` is switchover or failback."""
        super().__init__(**kwargs)
        self.verb = verb

    def execute(self, context: Context) -> None:
        """Start Spark for each micro-run that has something to copy."""
        from ferry_airflow.switching import step_lines  # noqa: PLC0415 - as above

        with airflow_errors(), self.switcher(context, lambda runs, plan: copy_left(self, runs, plan, context)) as found:
            lines = step_lines(found.step(self.id(context), Step.DRAIN), Step.DRAIN)
        for line in lines:
            self.log.info("%s", line)


class SwitchAssetsOperator(SwitchOperator):
    """Updates the assets of what a switch's drain copied, even if the drain failed: the copy stays."""

    def execute(self, context: Context) -> None:
        """Send an event for each topic and run, as the flow's own runs do; skipped if nothing was copied."""
        with airflow_errors(), self.switcher(context) as found:
            count = publish_drained(context, found, self.id(context))
        if not count:
            raise AirflowSkipException("the drain copied nothing: no asset is updated")
        self.log.info("%s of assets", count_of(count, "event"))


def publish_drained(context: Context, found: Switcher, switch: str) -> int:
    """Update the assets of what a switch's drain copied; return the number of events.

    It is 0 for a dry run, and if the drained flow updates no assets.
    """
    from ferry_airflow import steps, switching  # noqa: PLC0415 - as above

    via = found.sides.via
    if is_dry_run(context) or not via.airflow.updates_assets:
        return 0
    runs = switching.drained_by(found, switch)
    return sum(publish(context, via, run, steps.copied_topics(via, run)) for run in runs)


class SwitchReportOperator(SwitchOperator):
    """Finishes the switch when all is done, shows it, and keeps its report; fails when something is left."""

    operator_extra_links = (ReportLink(),)
    report_link = ""

    def execute(self, context: Context) -> None:
        """Report; the error names what is next. A report that cannot be written is a warning: clients have moved."""
        from ferry_airflow import switching  # noqa: PLC0415 - as above

        if is_dry_run(context):
            raise AirflowSkipException("dry run: nothing is switched")
        with airflow_errors(), self.switcher(context) as found:
            state = found.states().get(self.id(context))
            if state is None:
                raise final_failure("nothing was switched: the switch was never opened")
            if state.end is None and next_step(state) is None:
                state = found.finish(state.switch.id)
        for line in switching.report_lines(state):
            self.log.info("%s", line)
        if state.end is not None:
            self._keep(context, state)
        complaint = switching.complaint(state)
        if complaint is not None:
            raise final_failure(complaint)

    def _keep(self, context: Context, state: SwitchState) -> None:
        from ferry_airflow import switching  # noqa: PLC0415 - as above

        with airflow_errors():
            deviations = switching.deviations_to_log(self.config, self.flow, state)
            by, why = asked_by(context), reason_of(context)
            written, unwritten = switching.report_kept(self.config, self.flow, state, asked_by=by, reason=why)
        for line in deviations:
            self.log.info("%s", line)
        if unwritten is not None:
            self.log.warning("%s", unwritten)
        if written is not None:
            self.log.info("%s", written.sentence)
            self.report_link = place_on_page(Flow.parse(self.flow), written.number)
            # A task that fails returns nothing otherwise.
            context["ti"].xcom_push(key="return_value", value=switching.returned(state, written))
