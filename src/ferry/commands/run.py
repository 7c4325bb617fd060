"""`ferry run`: one micro-run without Airflow."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.command import Context, command, only_topics
from ferry.cli.identity import new_run
from ferry.cli.options import MaxBytesOption, MaxRecordsOption, MaxSecondsOption, TopicsOption
from ferry.cli.progress_bar import working
from ferry.cli.stopping import stop_signals
from ferry.errors import BadInput, Unreachable
from ferry.features.records.cli.in_spark import need_spark, planned_in_spark

if TYPE_CHECKING:
    from ferry.model import Plan


@command(table=True)
def run_command(
    context: Context,
    run: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="ID of the new run. Generated if omitted.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="RUN", help="Finish the run with this ID, by its own plan.")
    ] = None,
    topic: TopicsOption = None,
    max_bytes: MaxBytesOption = None,
    max_records: MaxRecordsOption = None,
    max_seconds: MaxSecondsOption = None,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Take the lane over from a deployment with another configuration.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, like `ferry plan`. Writes nothing.")
    ] = False,
    spark: Annotated[
        bool, typer.Option("--spark", help="Copy with Spark on this machine. Topics with a transform need it.")
    ] = False,
) -> int:
    """Plan, copy and report one micro-run on this machine. Several tasks run as processes of their own, or in Spark.

    Ctrl-C or SIGTERM ends the run in order: open chunks are committed, the next run continues after them. A second
    signal stops it at once.
    """
    from ferry.commands.copying import finish_run, translate_and_report  # noqa: PLC0415 - the help needs none of it
    from ferry.commands.forms import plan_json, run_json  # noqa: PLC0415 - as above
    from ferry.commands.views import show_plan, show_report  # noqa: PLC0415 - as above
    from ferry.features.observe.acts.after_run import PATIENCE_S, tell_run  # noqa: PLC0415 - as above
    from ferry.ledger.report import RunState  # noqa: PLC0415 - as above
    from ferry.plan.options import RunOptions  # noqa: PLC0415 - as above
    from ferry.plan.preview import refuses  # noqa: PLC0415 - as above
    from ferry.run.local import refuse_transforms  # noqa: PLC0415 - as above
    from ferry.run.micro_run import MicroRuns, local_origin  # noqa: PLC0415 - as above

    if resume is not None and (run or topic or max_bytes or max_records or max_seconds or take_over or dry_run):
        raise BadInput(f"--resume {resume} follows the run's own plan: omit the other options")
    if run is not None and not run.strip():
        raise BadInput("--id is empty: give the run an ID, or omit the option")
    chosen = context.flow()
    if not dry_run:
        _prepare(context, spark=spark)
    only = only_topics(chosen, topic)
    options = RunOptions(
        only=only, max_bytes=max_bytes, max_records=max_records, max_seconds=max_seconds, take_over=take_over
    )
    with stop_signals() as stop, ExitStack() as opened:
        with stop.breaking():
            runs = opened.enter_context(MicroRuns(chosen, patience_s=context.patience_s))

        def planned() -> Plan:
            stop.check()
            if resume is not None:
                return runs.plan_to_resume(resume)
            return runs.open_new(run or new_run("cli"), local_origin(), options)

        if dry_run:
            with working("Planning", quiet=context.quiet), stop.breaking():
                plan = runs.preview(options)
            context.answer(lambda: plan_json(plan), lambda: show_plan(plan))
            return 1 if refuses(plan) else 0
        if spark:
            preview = None if resume is not None else partial(runs.preview, options)
            plan, failure = planned_in_spark(runs, planned, preview=preview, only=only, quiet=context.quiet, stop=stop)
            report, untranslated = translate_and_report(runs, plan.run, stop)
            failure = failure or untranslated
        else:
            if resume is None:
                refuse_transforms(chosen, only)
            with working("Planning", quiet=context.quiet):
                plan = planned()
            if runs.unfinished_slices(plan):
                report, failure = finish_run(runs, plan, quiet=context.quiet)
            else:
                report, failure = translate_and_report(runs, plan.run, stop)
        tell_run(chosen, report, patience_s=min(context.patience_s, PATIENCE_S))
        context.answer(lambda: run_json(report), lambda: show_report(report))
        if stop():
            return 1
    if report.state is RunState.FAILED and isinstance(failure, Unreachable):
        return failure.exit_code
    return 0 if replace(report, later=()).state is RunState.SUCCESS else 1  # nothing is missing by now


def _prepare(context: Context, *, spark: bool) -> None:
    """Raise BadInput if the run could not be shown, or its Spark is not there."""
    context.refuse_csv("the report of a run")
    if spark:
        need_spark("--spark copies in Spark")
