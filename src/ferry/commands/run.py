"""`ferry run`: one micro-run without Airflow."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from ferry.cli.command import Context, command, only_topics
from ferry.cli.options import MaxBytesOption, MaxRecordsOption, MaxSecondsOption, TopicsOption
from ferry.cli.stopping import stop_signals
from ferry.errors import BadInput
from ferry.features.records.cli.in_spark import need_spark


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
    from ferry.commands.copying import RunWork, answered, answered_preview  # noqa: PLC0415 - the help needs none of it
    from ferry.plan.options import RunOptions  # noqa: PLC0415 - as above
    from ferry.run.micro_run import MicroRuns  # noqa: PLC0415 - as above

    if resume is not None and (run or topic or max_bytes or max_records or max_seconds or take_over or dry_run):
        raise BadInput(f"--resume {resume} follows the run's own plan: omit the other options")
    if run is not None and not run.strip():
        raise BadInput("--id is empty: give the run an ID, or omit the option")
    chosen = context.flow()
    if not dry_run:
        _prepare(context, spark=spark)
    options = RunOptions(
        only=only_topics(chosen, topic),
        max_bytes=max_bytes,
        max_records=max_records,
        max_seconds=max_seconds,
        take_over=take_over,
    )
    with stop_signals() as stop, ExitStack() as opened:
        with stop.breaking():
            runs = opened.enter_context(MicroRuns(chosen, patience_s=context.patience_s))
        work = RunWork(runs=runs, options=options, stop=stop, run=run, resume=resume, quiet=context.quiet)
        if dry_run:
            return answered_preview(work, context)
        report, failure = work.copy_in_spark() if spark else work.copy_here()
        return answered(work, context, report, failure)


def _prepare(context: Context, *, spark: bool) -> None:
    """Raise BadInput if the run could not be shown, or its Spark is not there."""
    context.refuse_csv("the report of a run")
    if spark:
        need_spark("--spark copies in Spark")
