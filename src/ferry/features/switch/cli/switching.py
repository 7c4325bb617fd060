"""`ferry switchover`, `ferry failover`, `ferry failback`: move clients to the other cluster of a flow."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.identity import new_run, person
from ferry.cli.output import echo, print_warning
from ferry.cli.progress_bar import working
from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.windows import time_ms
from ferry.errors import BadInput, FerryError
from ferry.features.evidence.cli.report_place import ReportOption, written_json
from ferry.features.evidence.rules.lines import deviation_lines
from ferry.features.records.cli.in_spark import copy_of
from ferry.features.switch.cli.approval import approval
from ferry.features.switch.cli.options import (
    DEFAULT,
    STOPPED,
    ApproveOption,
    CommandOption,
    DrainTimeoutOption,
    DryRunOption,
    IdOption,
    InterruptOption,
    LeaveActiveOption,
    LeaveGroupOption,
    LeaveTopicOption,
    LeaveUnknownOption,
    LostAtOption,
    MaxRecordsOption,
    MaxSecondsOption,
    NoReverseOption,
    NoSmokeOption,
    QuietSecondsOption,
    QuietTimeoutOption,
    StopCommandOption,
    StopUrlOption,
    UrlOption,
    WriteBlockOption,
    given_options,
)
from ferry.features.switch.cli.readiness import NOT_READY, readiness_json, show_readiness
from ferry.features.switch.cli.switches import switch_state_json
from ferry.features.switch.rules.steps import refuse_other_approval, refuse_other_options
from ferry.features.switch.settings import SwitchHook
from ferry.ledger.switch_codec import switch_json
from ferry.model.switch import Step, StepDone, SwitchOptions, SwitchState, Verb
from ferry.words import several

if TYPE_CHECKING:
    from ferry.config.settings import Settings
    from ferry.features.evidence.acts.folder import Written
    from ferry.features.switch.acts.switcher import Preview, Switcher


@command()
def switchover_command(
    context: Context,
    switch: IdOption = None,
    approve_by: ApproveOption = None,
    dry_run: DryRunOption = False,
    quiet_seconds: QuietSecondsOption = DEFAULT.quiet_seconds,
    quiet_timeout: QuietTimeoutOption = DEFAULT.quiet_timeout_seconds,
    drain_timeout: DrainTimeoutOption = DEFAULT.drain_timeout_seconds,
    leave_group: LeaveGroupOption = None,
    leave_active: LeaveActiveOption = False,
    max_records: MaxRecordsOption = None,
    max_seconds: MaxSecondsOption = None,
    remove_write_block: WriteBlockOption = False,
    no_smoke: NoSmokeOption = False,
    no_reverse: NoReverseOption = False,
    interrupt: InterruptOption = False,
    stop_command: StopCommandOption = None,
    stop_url: StopUrlOption = None,
    redirect_command: CommandOption = None,
    redirect_url: UrlOption = None,
    report: ReportOption = None,
) -> int:
    """Move clients to the target as planned: stop producers, copy all records, move the groups. Nothing is lost.

    Ends at the step that fails. Call it again with its --id to continue there.
    """
    named = context.both_ways()
    options = SwitchOptions(
        quiet_seconds=quiet_seconds,
        quiet_timeout_seconds=quiet_timeout,
        drain_timeout_seconds=drain_timeout,
        leave_groups=tuple(leave_group or ()),
        leave_active=leave_active,
        remove_write_block=remove_write_block,
        smoke=not no_smoke,
        reverse=not no_reverse,
        interrupt=interrupt,
        rpo_records=max_records,
        rpo_seconds=max_seconds,
    )
    hooks = (
        SwitchHook(command=redirect_command, url=redirect_url),
        SwitchHook(command=stop_command, url=stop_url),
    )
    return _switched(context, named, Verb.SWITCHOVER, switch, options, approve_by, hooks, report, dry_run=dry_run)


@command()
def failover_command(
    context: Context,
    switch: IdOption = None,
    approve_by: ApproveOption = None,
    dry_run: DryRunOption = False,
    lost_at: LostAtOption = None,
    leave_group: LeaveGroupOption = None,
    leave_active: LeaveActiveOption = False,
    leave_unknown: LeaveUnknownOption = False,
    remove_write_block: WriteBlockOption = False,
    no_smoke: NoSmokeOption = False,
    no_reverse: NoReverseOption = False,
    interrupt: InterruptOption = False,
    redirect_command: CommandOption = None,
    redirect_url: UrlOption = None,
    report: ReportOption = None,
) -> int:
    """Move clients to the target when the source is gone. Records that were not copied are lost, and counted per
    partition.

    Ends at the step that fails. Call it again with its --id to continue there.
    """
    named = context.both_ways()
    options = SwitchOptions(
        lost_at_ms=_lost_ms(lost_at),
        leave_groups=tuple(leave_group or ()),
        leave_active=leave_active,
        leave_unknown=leave_unknown,
        remove_write_block=remove_write_block,
        smoke=not no_smoke,
        reverse=not no_reverse,
        interrupt=interrupt,
    )
    hooks = (SwitchHook(command=redirect_command, url=redirect_url), None)
    return _switched(context, named, Verb.FAILOVER, switch, options, approve_by, hooks, report, dry_run=dry_run)


@command()
def failback_command(
    context: Context,
    switch: IdOption = None,
    approve_by: ApproveOption = None,
    dry_run: DryRunOption = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="The file for records that were left on the old primary."),
    ] = None,
    quiet_seconds: QuietSecondsOption = DEFAULT.quiet_seconds,
    quiet_timeout: QuietTimeoutOption = DEFAULT.quiet_timeout_seconds,
    drain_timeout: DrainTimeoutOption = DEFAULT.drain_timeout_seconds,
    leave_group: LeaveGroupOption = None,
    leave_topic: LeaveTopicOption = None,
    leave_active: LeaveActiveOption = False,
    max_records: MaxRecordsOption = None,
    max_seconds: MaxSecondsOption = None,
    remove_write_block: WriteBlockOption = False,
    no_smoke: NoSmokeOption = False,
    no_reverse: NoReverseOption = False,
    interrupt: InterruptOption = False,
    stop_command: StopCommandOption = None,
    stop_url: StopUrlOption = None,
    redirect_command: CommandOption = None,
    redirect_url: UrlOption = None,
    report: ReportOption = None,
) -> int:
    """Move clients back to the source of FLOW, the flow that was switched. Only records written since the switch are
    copied.

    FLOW is the flow that was switched: failback 'primary->backup' moves clients from backup to primary. Records that
    were left there by a failover are written to a file. Ends at the step that fails. Call it again with its --id to
    continue there.
    """
    named = context.both_ways()
    options = SwitchOptions(
        quiet_seconds=quiet_seconds,
        quiet_timeout_seconds=quiet_timeout,
        drain_timeout_seconds=drain_timeout,
        leave_groups=tuple(leave_group or ()),
        leave_topics=tuple(leave_topic or ()),
        leave_active=leave_active,
        remove_write_block=remove_write_block,
        smoke=not no_smoke,
        reverse=not no_reverse,
        interrupt=interrupt,
        export="" if output is None else str(output.absolute()),
        rpo_records=max_records,
        rpo_seconds=max_seconds,
    )
    hooks = (
        SwitchHook(command=redirect_command, url=redirect_url),
        SwitchHook(command=stop_command, url=stop_url),
    )
    return _switched(context, named, Verb.FAILBACK, switch, options, approve_by, hooks, report, dry_run=dry_run)


def _lost_ms(text: str | None) -> int | None:
    """Parse a time in the past, from which the outage is measured. Raises BadInput for a time in the future."""
    if text is None:
        return None
    lost_ms = time_ms("lost-at", text)
    if lost_ms > wall_ms():
        raise BadInput(f"--lost-at {text!r} is in the future: write when the source was lost")
    return lost_ms


def _switched(
    context: Context,
    named: tuple[Settings, FlowConfig],
    verb: Verb,
    given: str | None,
    options: SwitchOptions,
    approve_by: str | None,
    hooks: tuple[SwitchHook, SwitchHook | None],
    report: str | None,
    *,
    dry_run: bool,
) -> int:
    from ferry.features.switch.acts.report import deviations_of_switch, kept_report  # noqa: PLC0415 - brings the Kafka clients
    from ferry.features.switch.acts.switcher import Switcher  # noqa: PLC0415 - as above

    both, chosen = named
    switch = given or new_run(verb)
    copy = copy_of(chosen)
    hook, stop = hooks
    with Switcher(
        both,
        chosen,
        verb,
        who=person(),
        hook=hook,
        stop=stop,
        remove_write_block=options.remove_write_block,
        copy=copy,
        patience_s=context.patience_s,
    ) as switcher:
        known = switcher.known(switch)
        if known is not None:
            refuse_other_options(known, options, given_options(context.given))
            refuse_other_approval(known, approve_by)
        if dry_run:
            return _shown(context, switcher.preview(switch, options))
        if known is None:

            def show() -> str:
                preview = switcher.preview(switch, options)
                _shown(context, preview)
                return preview.switch.via.target

            cluster = "the cluster that is switched to"
            approver = approval(context, approve_by, show, what="switch", needs="a switch needs", cluster=cluster)
            switcher.open(switch, options, approver)
        try:
            state = _gone_on(context, switcher, switch)
        except FerryError as error:
            error.exit_code = STOPPED
            raise
    written, unwritten = kept_report(both, chosen, state, folder=report, patience_s=context.patience_s)
    _ended(context, state, deviations_of_switch(both, chosen, state), written)
    if unwritten is not None:
        print_warning(unwritten)
    return 0


def _gone_on(context: Context, switcher: Switcher, switch: str) -> SwitchState:
    first = sys.stderr if context.for_programs else sys.stdout
    with working("Beginning", quiet=context.quiet) as shown:

        def show_step(step: Step, done: StepDone | None) -> None:
            if done is None:
                shown(f"{step}: under way")
                return
            # Above the bar at a terminal. A pipe gets the line at once, because the bar holds back what is printed
            # meanwhile.
            place = (sys.stderr if context.for_programs else sys.stdout) if first.isatty() else first
            echo(f"{step}: {done.evidence.sentence}", file=place, flush=True)

        return switcher.run(switch, show_step if not context.quiet else lambda _step, _done: None)


def _ended(context: Context, state: SwitchState, deviations: Sequence[str], written: Written | None) -> None:
    report = () if written is None else (written.sentence,)
    found = deviation_lines(deviations)
    context.answer(
        lambda: {**switch_state_json(state), "deviations": list(deviations), "report": written_json(written)},
        lambda: echo(*found, _finished(state), *report, sep="\n"),
    )


def _finished(state: SwitchState) -> str:
    switch = state.switch
    left = switch.options.leave_topics
    stays = f"; what was written to {several(left)} since stays on {switch.via.source} alone" if left else ""
    approved = f"approved by {switch.approved_by}"
    return f"{switch.verb} {switch.id} is finished: {switch.via.target} is in use, {approved}{stays}"


def _shown(context: Context, preview: Preview) -> int:
    context.answer(lambda: _preview_json(preview), lambda: _show_preview(preview))
    return 0 if preview.readiness.ready else NOT_READY


def _preview_json(preview: Preview) -> dict[str, object]:
    return {
        "switch": switch_json(preview.switch),
        "steps": [{"step": step.value, "sentence": sentence} for step, sentence in preview.steps],
        "readiness": readiness_json(preview.readiness),
    }


def _show_preview(preview: Preview) -> None:
    for number, (step, sentence) in enumerate(preview.steps, 1):
        echo(f"{number:2}. {step}: {sentence}")
    show_readiness(preview.readiness)
