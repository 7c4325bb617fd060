"""`ferry drills`: rehearse a failover, and write a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from ferry.cli.command import Context, command, only_topics
from ferry.cli.identity import new_run, person
from ferry.cli.measures import lasting
from ferry.cli.options import MaxBytesOption, TopicsOption
from ferry.cli.output import echo
from ferry.cli.progress_bar import steps
from ferry.cli.stopping import stop_signals
from ferry.clock import wall_ms
from ferry.config.flow.start import Start, StartTime, parse_start
from ferry.config.text.problem import BadValue
from ferry.errors import BadInput
from ferry.features.drill.acts.timeline import Timeline
from ferry.features.evidence.cli.evidence import ended, prepared
from ferry.features.evidence.cli.report_place import ReportOption
from ferry.features.records.cli.in_spark import copy_of
from ferry.features.switch.cli.approval import approval, named_on_command_line
from ferry.features.switch.cli.options import (
    DEFAULT,
    STOPPED,
    ApproveOption,
    CommandOption,
    DrainTimeoutOption,
    LeaveActiveOption,
    LeaveGroupOption,
    LeaveTopicOption,
    QuietSecondsOption,
    QuietTimeoutOption,
    UrlOption,
    given_options,
)
from ferry.features.switch.settings import SwitchHook
from ferry.model.evidence import TimelineStep
from ferry.model.switch import Step, StepDone, SwitchOptions

WINDOW = timedelta(hours=1)
"""How far back a shadow drill copies without --from."""

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what the drill would do. Writes nothing.")]


@command()
def tabletop_command(
    context: Context,
    dry_run: DryRunOption = False,
    report: ReportOption = None,
) -> int:
    """Show what a failover would do and lose now, with numbers. Writes nothing but the report."""
    from ferry.features.drill.acts.tabletop import tabletop  # noqa: PLC0415 - brings the Kafka clients

    both, chosen = context.both_ways()
    folder = None if dry_run else prepared(chosen.report, report)
    with _diary(quiet=context.quiet) as diary:
        evidence, failure = tabletop(both, chosen, new_run("tabletop"), person(), diary, patience_s=context.patience_s)
    return ended(context, evidence, folder, failure)


@command()
def shadow_command(
    context: Context,
    topic: TopicsOption = None,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Where to begin: earliest, or a time. Default: one hour ago."),
    ] = None,
    max_bytes: MaxBytesOption = None,
    approved_by: Annotated[
        str, typer.Option("--approve-by", metavar="NAME", help="Who approved the drill, for the report.")
    ] = "",
    clean: Annotated[bool, typer.Option("--clean", help="First remove what a killed drill left.")] = False,
    dry_run: DryRunOption = False,
    report: ReportOption = None,
) -> int:
    """Copy to scratch topics, move the groups to scratch groups, compare everything, and clean up. Production is
    untouched.

    Exit code 1 when something was not as it should be; the report says what.
    """
    from ferry.features.drill.acts.shadow import ShadowDrill, ShadowOptions  # noqa: PLC0415 - brings the Kafka clients

    chosen = context.flow()
    options = ShadowOptions(
        lane=new_run("drill"),
        who=person(),
        start=_start(start),
        topics=only_topics(chosen, topic),
        max_bytes=max_bytes,
        clean=clean,
        approved_by=named_on_command_line(approved_by) if approved_by.strip() else "",
        approved_ms=wall_ms() if approved_by.strip() else 0,
    )
    drill = ShadowDrill(chosen, options, patience_s=context.patience_s)
    if dry_run:
        return _previewed(context, drill.preview()[0])
    folder = prepared(chosen.report, report)
    with stop_signals() as stop:
        with _diary(quiet=context.quiet, stop=stop) as diary:
            evidence, failure = drill.run(diary)
        return ended(context, evidence, folder, failure)


@command()
def partial_command(
    context: Context,
    topic: TopicsOption = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar="GROUP",
            help="Only this group, on all topics that it reads unless --topic is given. May be repeated.",
        ),
    ] = None,
    approved_by: ApproveOption = None,
    dry_run: DryRunOption = False,
    report: ReportOption = None,
) -> int:
    """Test a topic, or a group and its topics, on the live copies: copy to the end, write offsets, read, compare.

    No client is moved and nothing is paused. Exit code 1 when something was not as it should be.
    """
    from ferry.features.drill.acts.partial import PartialDrill, PartialOptions  # noqa: PLC0415 - brings the Kafka clients

    chosen = context.flow()
    topics = only_topics(chosen, topic)
    if topics is None and not group:
        raise BadInput("a partial drill needs topics or groups of the source: name one with --topic or --group")
    options = PartialOptions(
        drill=new_run("partial"),
        who=person(),
        approved_by="",
        approved_ms=0,
        topics=topics or frozenset(),
        groups=frozenset(group) if group else None,
    )
    drill = PartialDrill(chosen, options, patience_s=context.patience_s)
    if dry_run:
        return _previewed(context, drill.preview())
    folder = prepared(chosen.report, report)
    approver = approver_of(context, approved_by, drill.preview, chosen.flow.target)
    drill = PartialDrill(
        chosen, replace(options, approved_by=approver, approved_ms=wall_ms()), patience_s=context.patience_s
    )
    with stop_signals() as stop:
        with _diary(quiet=context.quiet, stop=stop) as diary:
            evidence, failure = drill.run(diary)
        return ended(context, evidence, folder, failure)


@command()
def full_command(
    context: Context,
    drill: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="ID", help="Drill ID. Generated if omitted. Pass an existing ID to resume that drill."
        ),
    ] = None,
    approved_by: ApproveOption = None,
    quiet_seconds: QuietSecondsOption = DEFAULT.quiet_seconds,
    quiet_timeout: QuietTimeoutOption = DEFAULT.quiet_timeout_seconds,
    drain_timeout: DrainTimeoutOption = DEFAULT.drain_timeout_seconds,
    leave_group: LeaveGroupOption = None,
    leave_topic: LeaveTopicOption = None,
    leave_active: LeaveActiveOption = False,
    redirect_command: CommandOption = None,
    redirect_url: UrlOption = None,
    stay: Annotated[
        float,
        lasting("--stay", "How long to wait before the failback begins.", default=0),
    ] = 0.0,
    dry_run: DryRunOption = False,
    report: ReportOption = None,
) -> int:
    """Move production clients to the target and back: a real switchover, then a failback. Nothing is lost.

    Ends at the step that fails. Call it again with its --id to continue there.
    """
    from ferry.features.drill.acts.full import FullDrill, FullOptions  # noqa: PLC0415 - brings the Kafka clients

    both, chosen = context.both_ways()
    options = FullOptions(
        drill=drill or new_run("full"),
        who=person(),
        approved_by="",
        hook=SwitchHook(command=redirect_command, url=redirect_url),
        switch=SwitchOptions(
            quiet_seconds=quiet_seconds,
            quiet_timeout_seconds=quiet_timeout,
            drain_timeout_seconds=drain_timeout,
            leave_groups=tuple(leave_group or ()),
            leave_topics=tuple(leave_topic or ()),
            leave_active=leave_active,
        ),
        given=given_options(context.given),
    )
    copy = copy_of(chosen)
    full = FullDrill(both, chosen, options, copy=copy, patience_s=context.patience_s)
    if dry_run:
        return _previewed(context, full.preview())
    folder = prepared(chosen.report, report)
    approver = approver_of(context, approved_by, full.preview, chosen.flow.target)
    full = FullDrill(both, chosen, replace(options, approved_by=approver), copy=copy, patience_s=context.patience_s)

    with steps(quiet=context.quiet) as shown:

        def show_step(step: Step, done: StepDone | None) -> None:
            shown.begin(str(step)) if done is None else shown.end(done.evidence.sentence)

        evidence, failure = full.run(show_step, lambda: time.sleep(stay))
    if failure is not None and any(not step.name.endswith("-open") for step in evidence.steps):
        failure.exit_code = STOPPED
    return ended(context, evidence, folder, failure)


def approver_of(context: Context, given: str | None, would: Callable[[], tuple[str, ...]], target: str) -> str:
    """Return who approves of a drill in production."""

    def show() -> str:
        _previewed(context, would())
        return target

    needs = "this drill touches production and needs"
    return approval(context, given, show, what="drill", needs=needs, cluster="the target")


def _start(text: str | None) -> Start:
    if text is None:
        return StartTime(timestamp_ms=int((datetime.now(UTC) - WINDOW).timestamp() * 1000))
    try:
        return parse_start(text)
    except BadValue:
        raise BadInput(
            f"--from {text!r} is not understood: write earliest, or a time with its zone, such as 2026-01-31T06:00:00Z"
        ) from None


@contextmanager
def _diary(*, quiet: bool, stop: Callable[[], bool] = lambda: False) -> Iterator[Timeline]:
    """Make the diary of a drill; the operator sees its steps."""
    with steps(quiet=quiet) as shown:

        def show_step(step: TimelineStep | str) -> None:
            if isinstance(step, str):
                shown.begin(step)
            else:
                shown.end(f"{step.outcome} in {step.seconds:.1f} s: {step.detail}")

        yield Timeline(on_step=show_step, stop=stop)


def _previewed(context: Context, would: tuple[str, ...]) -> int:
    lines = (f"{number}. {sentence}" for number, sentence in enumerate(would, 1))
    context.answer(lambda: {"would": list(would)}, lambda: echo(*lines, sep="\n"))
    return 0
