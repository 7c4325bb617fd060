"""`ferry backfill`: one window of history, in as many micro-runs as its budgets need."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from ferry.cli.command import Context, command, only_topics
from ferry.cli.options import MaxBytesOption, MaxRecordsOption, MaxSecondsOption, TopicsOption
from ferry.cli.stopping import stop_signals
from ferry.config.flow.windows import parse_window
from ferry.errors import BadInput
from ferry.model import LaneKind, check_lane
from ferry.plan.options import RunOptions


@command(table=True)
def backfill_command(
    context: Context,
    lane: Annotated[
        str | None,
        typer.Option(
            "--lane",
            metavar="LANE",
            help="backfill-NAME copies to scratch topics; append-NAME copies into the live "
            "topics, after the live records.",
        ),
    ] = None,
    into_live: Annotated[
        bool,
        typer.Option(
            "--into-live",
            help="Copy into the live topics, as a run of the live lane. The lane must not "
            "have copied these partitions yet.",
        ),
    ] = False,
    topic: TopicsOption = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Begin of the window: ISO 8601 with a time zone, for example 2026-01-31T06:00:00Z.",
        ),
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="The window ends before it.")] = None,
    times: Annotated[
        list[str] | None,
        typer.Option(
            "--times",
            metavar="TOPIC=TIME/TIME",
            help="Window of one topic, instead of --from and --to. May be repeated.",
        ),
    ] = None,
    start_offset: Annotated[
        list[str] | None,
        typer.Option(
            "--from-offset",
            metavar="TOPIC:PARTITION:OFFSET",
            help="Begin of the window as an offset, instead of a time. May be repeated.",
        ),
    ] = None,
    end_offset: Annotated[
        list[str] | None,
        typer.Option("--to-offset", metavar="TOPIC:PARTITION:OFFSET", help="The window ends before it."),
    ] = None,
    allow_deleted: Annotated[
        bool,
        typer.Option(
            "--allow-deleted", help="Copy the remaining records if the source may have deleted some of the window."
        ),
    ] = False,
    max_bytes: MaxBytesOption = None,
    max_records: MaxRecordsOption = None,
    max_seconds: MaxSecondsOption = None,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Take the lane over from a deployment with another configuration.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the window. Writes nothing.")] = False,
) -> int:
    """Copy a window of history once, by default to scratch topics of a lane of its own. Safe to repeat.

    Budgets are those of each of its micro-runs. Ctrl-C or SIGTERM ends the open chunks; the same command
    continues there.
    """
    from ferry.commands.window_work import WindowWork, answered  # noqa: PLC0415 - the help needs none of it
    from ferry.run.micro_run import MicroRuns  # noqa: PLC0415 - as above

    window = parse_window(start, end, start_offset or (), end_offset or (), times or (), allow_deleted=allow_deleted)
    if into_live == (lane is not None):
        raise BadInput("backfill copies to a lane of its own or into live: give --lane backfill-NAME, or --into-live")
    if lane is not None:
        check_lane(lane, LaneKind.BACKFILL, LaneKind.APPEND)
    if topic and window.topics is not None:
        raise BadInput("--topic narrows windows of two times; this window names its topics: omit --topic")
    chosen = context.flow()
    only = only_topics(chosen, topic if window.topics is None else sorted(window.topics))
    options = RunOptions(
        only=only,
        window=window,
        max_bytes=max_bytes,
        max_records=max_records,
        max_seconds=max_seconds,
        take_over=take_over,
    )
    with stop_signals() as stop, ExitStack() as opened:
        with stop.breaking():
            runs = opened.enter_context(MicroRuns(chosen, lane=lane, patience_s=context.patience_s))
            work = WindowWork(runs, options, stop, quiet=context.quiet)
        if not dry_run:
            work.copy()
        return answered(work, context, dry_run=dry_run)
