"""`ferry switchover`, `ferry failover`, `ferry failback`: move clients to the other cluster of a flow."""

from __future__ import annotations

import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.desk import (
    DEFAULT_PATIENCE,
    ConfigOption,
    Desk,
    FlowArgument,
    JsonOption,
    PatienceOption,
    QuietOption,
    VerboseOption,
)
from ferry.cli.output import print_json
from ferry.cli.person import person
from ferry.cli.switch.readiness import NOT_READY, MaxRecordsOption, MaxSecondsOption, readiness_json, show_readiness
from ferry.errors import BadInput, Refused

if TYPE_CHECKING:  # the command line starts light
    from ferry.model.switch import Step, StepDone, SwitchOptions, SwitchState, Verb
    from ferry.run.switch.switcher import Preview, Switcher

IdOption = Annotated[
    str | None,
    typer.Option("--id", metavar="ID", help="The switch's id: made up when not given; a known one is gone on with."),
]
ApproveOption = Annotated[
    str | None,
    typer.Option("--approve-by", metavar="NAME", help="Who approves; without it a person at the terminal is asked."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the steps and the checks; write nothing.")]
QuietSecondsOption = Annotated[
    float, typer.Option("--quiet-seconds", min=0, metavar="N", help="So long no partition may grow.")
]
QuietTimeoutOption = Annotated[
    float, typer.Option("--quiet-timeout", min=0, metavar="N", help="How long to wait for that, in seconds.")
]
DrainTimeoutOption = Annotated[
    float, typer.Option("--drain-timeout", min=0, metavar="N", help="How long the last records may take, in seconds.")
]
LeaveGroupOption = Annotated[
    list[str] | None, typer.Option("--leave-group", metavar="GROUP", help="Do not move this group; may be repeated.")
]
LeaveActiveOption = Annotated[
    bool, typer.Option("--leave-active", help="Leave groups that have members, instead of refusing.")
]
WriteBlockOption = Annotated[
    bool, typer.Option("--remove-write-block", help="Delete ACLs that deny WRITE on the new cluster's topics.")
]
NoSmokeOption = Annotated[bool, typer.Option("--no-smoke", help="Leave the smoke test out.")]
NoReverseOption = Annotated[bool, typer.Option("--no-reverse", help="Do not start the reverse flow.")]
InterruptOption = Annotated[bool, typer.Option("--interrupt", help="End a run that is at work, or was killed.")]
CommandOption = Annotated[
    str | None,
    typer.Option("--redirect-command", metavar="CMD", help="In place of ferry.switch.redirect.command."),
]
UrlOption = Annotated[
    str | None, typer.Option("--redirect-url", metavar="URL", help="In place of ferry.switch.redirect.url.")
]


def switchover_command(
    ctx: typer.Context,
    flow: FlowArgument = None,
    switch: IdOption = None,
    approve_by: ApproveOption = None,
    dry_run: DryRunOption = False,
    quiet_seconds: QuietSecondsOption = 10.0,
    quiet_timeout: QuietTimeoutOption = 600.0,
    drain_timeout: DrainTimeoutOption = 3600.0,
    leave_group: LeaveGroupOption = None,
    leave_active: LeaveActiveOption = False,
    max_records: MaxRecordsOption = None,
    max_seconds: MaxSecondsOption = None,
    remove_write_block: WriteBlockOption = False,
    no_smoke: NoSmokeOption = False,
    no_reverse: NoReverseOption = False,
    interrupt: InterruptOption = False,
    redirect_command: CommandOption = None,
    redirect_url: UrlOption = None,
    patience: PatienceOption = DEFAULT_PATIENCE,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> int:
    """Move clients to the target as planned: producers stop, all is copied, groups move, nothing is lost.

    Ends at the step that cannot be done, and goes on there when called again with its --id.
    """
    # Imported here: the command line starts light.
    from ferry.model.switch import SwitchOptions, Verb

    desk = Desk.of(ctx, config=config, as_json=as_json, quiet=quiet, verbose=verbose)
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
    return _switched(
        desk, flow, Verb.SWITCHOVER, switch, options, approve_by, dry_run, patience, redirect_command, redirect_url
    )


def failover_command(
    ctx: typer.Context,
    flow: FlowArgument = None,
    switch: IdOption = None,
    approve_by: ApproveOption = None,
    dry_run: DryRunOption = False,
    leave_group: LeaveGroupOption = None,
    leave_active: LeaveActiveOption = False,
    remove_write_block: WriteBlockOption = False,
    no_smoke: NoSmokeOption = False,
    no_reverse: NoReverseOption = False,
    interrupt: InterruptOption = False,
    redirect_command: CommandOption = None,
    redirect_url: UrlOption = None,
    patience: PatienceOption = DEFAULT_PATIENCE,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> int:
    """Move clients to the target although the source is gone: what was not copied is lost, and counted by partition.

    Ends at the step that cannot be done, and goes on there when called again with its --id.
    """
    # Imported here: the command line starts light.
    from ferry.model.switch import SwitchOptions, Verb

    desk = Desk.of(ctx, config=config, as_json=as_json, quiet=quiet, verbose=verbose)
    options = SwitchOptions(
        leave_groups=tuple(leave_group or ()),
        leave_active=leave_active,
        remove_write_block=remove_write_block,
        smoke=not no_smoke,
        reverse=not no_reverse,
        interrupt=interrupt,
    )
    return _switched(
        desk, flow, Verb.FAILOVER, switch, options, approve_by, dry_run, patience, redirect_command, redirect_url
    )


def failback_command(
    ctx: typer.Context,
    flow: FlowArgument = None,
    switch: IdOption = None,
    approve_by: ApproveOption = None,
    dry_run: DryRunOption = False,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Where records go that were left on the old primary."),
    ] = None,
    quiet_seconds: QuietSecondsOption = 10.0,
    quiet_timeout: QuietTimeoutOption = 600.0,
    drain_timeout: DrainTimeoutOption = 3600.0,
    leave_group: LeaveGroupOption = None,
    leave_active: LeaveActiveOption = False,
    max_records: MaxRecordsOption = None,
    max_seconds: MaxSecondsOption = None,
    remove_write_block: WriteBlockOption = False,
    no_smoke: NoSmokeOption = False,
    no_reverse: NoReverseOption = False,
    interrupt: InterruptOption = False,
    redirect_command: CommandOption = None,
    redirect_url: UrlOption = None,
    patience: PatienceOption = DEFAULT_PATIENCE,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> int:
    """Move clients back to the source of a flow that was switched: only what came since is copied.

    Records that were left there by a failover are written to a file. Ends at the step that cannot be done, and goes on
    there when called again with its --id.
    """
    # Imported here: the command line starts light.
    from ferry.model.switch import SwitchOptions, Verb

    desk = Desk.of(ctx, config=config, as_json=as_json, quiet=quiet, verbose=verbose)
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
        export="" if export is None else str(export.absolute()),
        rpo_records=max_records,
        rpo_seconds=max_seconds,
    )
    return _switched(
        desk, flow, Verb.FAILBACK, switch, options, approve_by, dry_run, patience, redirect_command, redirect_url
    )


def _switched(
    desk: Desk,
    flow: str | None,
    verb: Verb,
    given: str | None,
    options: SwitchOptions,
    approve_by: str | None,
    dry_run: bool,
    patience: float,
    command: str | None,
    url: str | None,
) -> int:
    # Imported here: the command line starts light.
    from ferry.config.flow.flow import RedirectHook
    from ferry.run.switch.switcher import Switcher

    settings = desk.settings()
    chosen = desk.flow_of(settings, flow)
    switch = given or f"{verb}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
    with Switcher(
        desk.whole_settings(settings),
        chosen,
        verb,
        who=person(),
        hook=RedirectHook(command=command, url=url),
        patience_s=patience,
    ) as switcher:
        if dry_run:
            return _shown(desk, switcher.preview(switch, options))
        if switcher.known(switch) is None:
            switcher.open(switch, options, _approval(desk, switcher, switch, options, approve_by))
        return _gone_on(desk, switcher, switch)


def _gone_on(desk: Desk, switcher: Switcher, switch: str) -> int:
    # Imported here: the command line starts light.
    from ferry.cli.switch.switches import switch_state_json

    def told(step: Step, done: StepDone | None) -> None:
        if done is not None:
            print(f"{step}: {done.evidence.sentence}", file=sys.stderr if desk.as_json else sys.stdout, flush=True)

    state = switcher.run(switch, told if not desk.quiet else lambda _step, _done: None)
    if desk.as_json:
        print_json(switch_state_json(state))
    else:
        print(_finished(state))
    return 0


def _finished(state: SwitchState) -> str:
    switch = state.switch
    return f"{switch.verb} {switch.id} is finished: {switch.via.target} is in use, approved by {switch.approved_by}"


def _shown(desk: Desk, preview: Preview) -> int:
    # Imported here: the command line starts light.
    from ferry.decide.switch.codec import switch_json

    if desk.as_json:
        print_json(
            {
                "switch": switch_json(preview.switch),
                "steps": [{"step": step.value, "sentence": sentence} for step, sentence in preview.steps],
                "readiness": readiness_json(preview.readiness),
            }
        )
    else:
        for number, (step, sentence) in enumerate(preview.steps, 1):
            print(f"{number:2}. {step}: {sentence}")
        show_readiness(preview.readiness)
    return 0 if preview.readiness.ready else NOT_READY


def _approval(desk: Desk, switcher: Switcher, switch: str, options: SwitchOptions, approve_by: str | None) -> str:
    """Who approves. A person at the terminal sees the steps first, and names the cluster that is switched to."""
    if approve_by is not None:
        return approve_by
    if desk.as_json or not sys.stdin.isatty():
        raise BadInput("a switch needs somebody's approval: say whose with --approve-by NAME, or call it at a terminal")
    preview = switcher.preview(switch, options)
    _shown(desk, preview)
    new = preview.switch.via.target
    if typer.prompt(f"To approve, write the name of the cluster that is switched to ({new})", default="") != new:
        raise Refused("the switch was not approved, and nothing was written")
    return person()
