"""A run, planned and copied to its end: all slots, the groups' offsets, and its own verification."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

from ferry.cli.command import Context
from ferry.cli.identity import new_run
from ferry.cli.output import print_error
from ferry.cli.progress_bar import working
from ferry.cli.stopping import Stop, stop_signals
from ferry.commands.forms import plan_json, run_json
from ferry.commands.progress import shown_progress
from ferry.commands.views import show_plan, show_report
from ferry.copy.slot_end import SlotEnd, failure_of, outcome_of
from ferry.errors import FerryError, Refused, Unreachable
from ferry.features.groups.acts.of_run import checkpoint
from ferry.features.observe.acts.after_run import PATIENCE_S, publish_run
from ferry.features.records.cli.in_spark import copied_in_spark, planned_and_copied_in_spark
from ferry.ledger.report import Report, RunState, not_verified, without_groups
from ferry.ledger.run_report import report_of
from ferry.model import Attempt, Plan, TopicPartition, VerifyMode
from ferry.plan.options import RunOptions
from ferry.plan.preview import refuses
from ferry.run.local import copy_all, refuse_transforms
from ferry.run.micro_run import MicroRuns, local_origin


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWork:
    """The work of `ferry run`: one micro-run, new or resumed."""

    runs: MicroRuns
    options: RunOptions
    stop: Stop
    run: str | None
    """The id of a new run; None: it is generated."""
    resume: str | None
    """The id of the run that is resumed; None: the run is new."""
    quiet: bool

    def copy_here(self) -> tuple[Report, FerryError | None]:
        """Plan and copy in processes of this machine; return the report, and why the run is not done, None if it is.

        Raises Refused, before a new run is opened, if it needs Spark.
        """
        if self.resume is None:
            refuse_transforms(self.runs.flow, self.options.only)
        with working("Planning", quiet=self.quiet):
            plan = self._planned()
        if self.runs.unfinished_slices(plan):
            return finish_run(self.runs, plan, quiet=self.quiet)
        return translate_and_report(self.runs, plan.run, self.stop)

    def copy_in_spark(self) -> tuple[Report, FerryError | None]:
        """Start Spark, then plan and copy; return the report, and why the run is not done, None if it is."""
        plan, failure = planned_and_copied_in_spark(
            self.runs,
            self._planned,
            preview=partial(self.runs.preview, self.options) if self.resume is None else None,
            only=self.options.only,
            quiet=self.quiet,
            stop=self.stop,
        )
        report, untranslated = translate_and_report(self.runs, plan.run, self.stop)
        return report, failure or untranslated

    def _planned(self) -> Plan:
        self.stop.check()
        if self.resume is not None:
            return self.runs.plan_to_resume(self.resume)
        return self.runs.open_new(self.run or new_run("cli"), local_origin(), self.options)


def answered_preview(work: RunWork, context: Context) -> int:
    """Print the plan that a new run would have; return the exit code."""
    with working("Planning", quiet=work.quiet), work.stop.breaking():
        plan = work.runs.preview(work.options)
    context.answer(lambda: plan_json(plan), lambda: show_plan(plan))
    return 1 if refuses(plan) else 0


def answered(work: RunWork, context: Context, report: Report, failure: FerryError | None) -> int:
    """Write the metrics of a run, and print its report; return the exit code."""
    publish_run(work.runs.flow, report, patience_s=min(context.patience_s, PATIENCE_S))
    context.answer(lambda: run_json(report), lambda: show_report(report))
    if work.stop():
        return 1
    if report.state is RunState.FAILED and isinstance(failure, Unreachable):
        return failure.exit_code
    return 0 if replace(report, later=()).state is RunState.SUCCESS else 1  # nothing is missing by now


def finish_run(runs: MicroRuns, plan: Plan, *, quiet: bool, ahead: int = 0) -> tuple[Report, FerryError | None]:
    """Copy a plan as a new attempt, then translate groups, and verify if that is due.

    Return the report, and why the run is not done, None if it is. A plan with transformed topics is copied in a Spark
    of this machine. `ahead`: offsets that runs after this one are to copy, for the estimate of the remaining time.

    If the ledger cannot be written or read after a copy without Spark, the report has what the slots returned, and the
    groups as failed. Raises the error if that is nothing, and after a copy in Spark.
    """
    with stop_signals() as stop:
        if plan.row_slots:
            failure = copied_in_spark(runs, plan, quiet=quiet, stop=stop)
            report, untranslated = translate_and_report(runs, plan.run, stop)
            return report, failure or untranslated
        return _finish_here(runs, plan, stop, quiet=quiet, ahead=ahead)


def _finish_here(
    runs: MicroRuns, plan: Plan, stop: Stop, *, quiet: bool, ahead: int
) -> tuple[Report, FerryError | None]:
    attempt = runs.begin(plan, local_origin())
    ends = _shown_copy(runs, plan, attempt, stop, quiet=quiet, ahead=ahead) if plan.slices else []
    failure = failure_of(plan, ends)
    try:
        runs.record_outcome(plan, attempt, ends)
        report, untranslated = translate_and_report(runs, plan.run, stop)
    except FerryError as error:
        report = report_of_ends(plan, attempt.started_ms, ends)
        if not report.receipts:
            raise
        print_error(f"{error}; the report has what the tasks reported, without the ledger")
        report = without_groups(report, error)
        if runs.flow.verification.mode is not VerifyMode.OFF:
            report = not_verified(report, str(error))
        return report, failure or error
    return report, failure or untranslated


def _shown_copy(runs: MicroRuns, plan: Plan, attempt: Attempt, stop: Stop, *, quiet: bool, ahead: int) -> list[SlotEnd]:
    task = runs.slot_task(plan, plan.used_slots[0], attempt)
    with shown_progress(plan, task, quiet=quiet, ahead=ahead) as progress:
        return copy_all(runs, plan, attempt, stop=stop, progress=progress)


def translate_and_report(runs: MicroRuns, run: str, stop: Stop) -> tuple[Report, FerryError | None]:
    """Translate the groups' offsets, and verify if that is due; return the report, and why one of these failed."""
    try:
        checkpoint(runs, run)
    except (Refused, Unreachable) as error:
        return without_groups(runs.report(run), error), error
    return _verify_and_report(runs, run, stop)


def _verify_and_report(runs: MicroRuns, run: str, stop: Stop) -> tuple[Report, FerryError | None]:
    """Verify what was copied if that is due; return the report, and why that failed, None if it did not."""
    if runs.flow.verification.mode is VerifyMode.OFF:
        return runs.report(run), None
    from ferry.features.verify.acts.own_run import verify_run  # noqa: PLC0415 - only where a run verifies itself

    if stop():
        return not_verified(runs.report(run), f"{stop.by} came first, so verify it with ferry verify"), None
    try:
        verify_run(runs.flow, run, patience_s=runs.patience_s)
    except (Refused, Unreachable) as error:
        return not_verified(runs.report(run), str(error)), error
    return runs.report(run), None


def report_of_ends(plan: Plan, started_ms: int, ends: Collection[SlotEnd]) -> Report:
    """Return the report of a run from its slots alone, for when the ledger cannot be read.

    Their receipts are of acknowledged commits. What an attempt before this one copied is not among them.
    """
    receipts = [receipt for end in ends for receipt in end.receipts]
    reached: dict[TopicPartition, int] = {}
    for receipt in receipts:
        reached[receipt.source] = max(receipt.end, reached.get(receipt.source, -1))
    lasts = {receipt.target: receipt for receipt in receipts if receipt.dealt}
    return report_of(plan, started_ms, receipts, reached, outcome_of(plan, ends), lasts)
