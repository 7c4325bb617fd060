"""`ferry run`: one micro-run without Airflow."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.commands.plan import MaxBytesOption, MaxRecordsOption, MaxSecondsOption, show_plan
from ferry.cli.commands.shown import show_report
from ferry.cli.desk import (
    DEFAULT_PATIENCE,
    ConfigOption,
    Desk,
    FlowArgument,
    JsonOption,
    PatienceOption,
    QuietOption,
    TopicsOption,
    VerboseOption,
    only_topics,
)
from ferry.cli.output import print_error, print_json
from ferry.cli.person import new_run
from ferry.errors import BadInput, FerryError, Refused, Unreachable

if TYPE_CHECKING:  # the command line starts light
    from ferry.cli.commands.stopping import Stop
    from ferry.ledger.report import Report
    from ferry.model import Plan
    from ferry.run.micro_run import MicroRuns


def run_command(
    ctx: typer.Context,
    flow: FlowArgument = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="The new run's id; made up when not given.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="RUN", help="Copy what a planned run left, by its own plan.")
    ] = None,
    topic: TopicsOption = None,
    max_bytes: MaxBytesOption = None,
    max_records: MaxRecordsOption = None,
    max_seconds: MaxSecondsOption = None,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Take the lane from a deployment that has another configuration.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Like `ferry plan`: write nothing.")] = False,
    spark: Annotated[
        bool, typer.Option("--spark", help="Copy in a Spark of this machine, which transformed topics need.")
    ] = False,
    patience: PatienceOption = DEFAULT_PATIENCE,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> int:
    """Plan, copy and report one micro-run on this machine, several tasks in processes of their own, or in Spark.

    Ctrl-C or SIGTERM ends the run in order: open chunks are committed, the next run continues after them. A second
    signal stops it at once.
    """
    # Imported here: the command line starts light.
    from ferry.cli.bar import working
    from ferry.cli.commands.in_spark import need_spark, planned_in_spark
    from ferry.cli.commands.stopping import stop_signals
    from ferry.cli.shapes import run_json
    from ferry.features.observe.acts.told import PATIENCE_S, tell_run
    from ferry.ledger.report import RunState
    from ferry.plan.options import RunOptions
    from ferry.run.local import refuse_transforms
    from ferry.run.micro_run import MicroRuns, local_origin

    desk = Desk.of(ctx, config=config, as_json=as_json, quiet=quiet, verbose=verbose)
    if resume is not None and (run or topic or max_bytes or max_records or max_seconds or take_over or dry_run):
        raise BadInput(f"--resume {resume} follows the plan that the run has: leave the other options away")
    if run is not None and not run.strip():
        raise BadInput("--run is empty: give the run an id, or leave the option away")
    chosen = desk.flow(flow)
    if spark and not dry_run:
        need_spark("--spark copies in Spark")
    only = only_topics(chosen, topic)
    options = RunOptions(
        only=only, max_bytes=max_bytes, max_records=max_records, max_seconds=max_seconds, take_over=take_over
    )
    with stop_signals() as stop, ExitStack() as opened:
        with stop.breaking():
            runs = opened.enter_context(MicroRuns(chosen, patience_s=patience))

        def planned() -> Plan:
            stop.check()
            if resume is not None:
                return runs.resume(resume)
            return runs.open_new(run or new_run("cli"), local_origin(), options)

        if dry_run:
            with working("Planning", quiet=desk.quiet), stop.breaking():
                plan = runs.preview(options)
            show_plan(plan, as_json=desk.as_json)
            return 1 if plan.refusals else 0
        if spark:
            preview = None if resume is not None else partial(runs.preview, options)
            plan, failure = planned_in_spark(runs, planned, preview=preview, only=only, quiet=desk.quiet, stop=stop)
            report, untranslated = _checkpointed(runs, plan.run, stop)
            failure = failure or untranslated
        else:
            if resume is None:
                refuse_transforms(chosen, only)
            with working("Planning", quiet=desk.quiet):
                plan = planned()
            if runs.left(plan):
                report, failure = copied(runs, plan, quiet=desk.quiet)
            else:
                report, failure = _checkpointed(runs, plan.run, stop)
        tell_run(chosen, report, patience_s=min(patience, PATIENCE_S))
        print_json(run_json(report)) if desk.as_json else show_report(report)
        if stop():
            return 1
    if report.state is RunState.FAILED and isinstance(failure, Unreachable):
        return failure.exit_code
    return 0 if report.state is RunState.SUCCESS else 1


def copied(runs: MicroRuns, plan: Plan, *, quiet: bool, ahead: int = 0) -> tuple[Report, FerryError | None]:
    """Copy all slots, keep in the ledger what they refused, and report; also why the attempt is not done, if it is not.

    A plan with transformed topics is copied in a Spark of this machine.

    `ahead`: offsets that runs behind this one are to copy, for the estimate of the time that is left.
    When the target is gone by then the report is what the slots said; Unreachable when nothing was copied.
    """
    # Imported here: the command line starts light.
    from ferry.cli.commands.in_spark import copied_in_spark
    from ferry.cli.commands.stopping import stop_signals

    with stop_signals() as stop:
        if plan.row_slots:
            failure = copied_in_spark(runs, plan, quiet=quiet, stop=stop)
            report, untranslated = _checkpointed(runs, plan.run, stop)
            return report, failure or untranslated
        return _copied_here(runs, plan, stop, quiet=quiet, ahead=ahead)


def _copied_here(
    runs: MicroRuns, plan: Plan, stop: Stop, *, quiet: bool, ahead: int
) -> tuple[Report, FerryError | None]:
    # Imported here: the command line starts light.
    from ferry.cli.commands.progress import shown_progress
    from ferry.copy.ends import failure_of, told_report
    from ferry.run.local import copy_all
    from ferry.run.micro_run import local_origin

    attempt = runs.begin(plan, local_origin())
    with shown_progress(plan, quiet=quiet, ahead=ahead) as progress:
        ends = copy_all(runs, plan, attempt, stop=stop, progress=progress)
    failure = failure_of(plan, ends)
    try:
        runs.record_outcome(plan, attempt, ends)
        report, untranslated = _checkpointed(runs, plan.run, stop)
    except Unreachable as error:
        report = told_report(plan, attempt.started_ms, ends)
        if not report.receipts:
            raise
        print_error("Unreachable", f"{error}; the report says what the tasks know, without the ledger", as_json=False)
        return report, failure
    return report, failure or untranslated


def _checkpointed(runs: MicroRuns, run: str, stop: Stop) -> tuple[Report, FerryError | None]:
    """Translate the groups' offsets, and report; also why they could not be, if they were not."""
    # Imported here: the command line starts light.
    from ferry.features.groups.acts.of_run import checkpoint
    from ferry.ledger.report import without_groups

    try:
        checkpoint(runs, run)
    except (Refused, Unreachable) as error:
        return without_groups(runs.report(run), str(error)), error
    return _verified(runs, run, stop)


def _verified(runs: MicroRuns, run: str, stop: Stop) -> tuple[Report, FerryError | None]:
    """Verify what was copied where that is due, and report; also why it could not be, if it could not."""
    # Imported here: the command line starts light.
    from ferry.ledger.report import not_verified
    from ferry.model import VerifyMode

    if runs.flow.verification.mode is VerifyMode.OFF:
        return runs.report(run), None
    if stop():
        return not_verified(runs.report(run), f"{stop.by} came first, so verify it with ferry verify"), None
    from ferry.features.verify.acts.own_run import verify_run

    try:
        verify_run(runs.flow, run, patience_s=runs.patience_s)
    except (Refused, Unreachable) as error:
        return not_verified(runs.report(run), str(error)), error
    return runs.report(run), None
