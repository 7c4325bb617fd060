"""The options that the commands about switches share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from ferry.cli.measures import lasting
from ferry.model.switch import SwitchOptions
from ferry.units import LONG_MAX

DEFAULT = SwitchOptions()

STOPPED = 4
"""Exit code: the switch has begun and stopped at a step; it is continued by its id."""

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Switch ID, as shown by ferry switches list.")]
IdOption = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="ID", help="Switch ID. Generated if omitted. Pass an existing ID to resume that switch."
    ),
]
ApproveOption = Annotated[
    str | None,
    typer.Option("--approve-by", metavar="NAME", help="Who approves. If omitted, the person at the terminal is asked."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the steps and the checks. Writes nothing.")]
QuietSecondsOption = Annotated[
    float,
    lasting(
        "--quiet-seconds",
        "Wait until no source partition has grown for this long.",
        default=DEFAULT.quiet_seconds,
    ),
]
QuietTimeoutOption = Annotated[
    float,
    lasting("--quiet-timeout", "Stop if that takes longer.", default=DEFAULT.quiet_timeout_seconds),
]
DrainTimeoutOption = Annotated[
    float,
    lasting("--drain-timeout", "Stop if copying the last records takes longer.", default=DEFAULT.drain_timeout_seconds),
]
LostAtOption = Annotated[
    str | None,
    typer.Option(
        "--lost-at",
        metavar="TIME",
        help="When the source was lost, for example 2026-01-31T06:00:00Z. The report counts RTO and loss from it.",
    ),
]
LeaveGroupOption = Annotated[
    list[str] | None, typer.Option("--leave-group", metavar="GROUP", help="Do not move this group. May be repeated.")
]
LeaveTopicOption = Annotated[
    list[str] | None,
    typer.Option(
        "--leave-topic",
        metavar="TOPIC",
        help="Do not copy this transformed topic back: records written to it since the switch stay where they are. "
        "May be repeated.",
    ),
]
LeaveActiveOption = Annotated[
    bool, typer.Option("--leave-active", help="Do not move groups that have members, instead of refusing.")
]
LeaveUnknownOption = Annotated[
    bool,
    typer.Option(
        "--leave-unknown",
        help="Continue even if the ledger does not list all groups of the source, instead of refusing.",
    ),
]
WriteBlockOption = Annotated[
    bool, typer.Option("--remove-write-block", help="Delete ACLs that deny WRITE on a single topic of the new cluster.")
]
NoSmokeOption = Annotated[bool, typer.Option("--no-smoke", help="Omit the smoke test.")]
NoReverseOption = Annotated[bool, typer.Option("--no-reverse", help="Do not start the flow back.")]
InterruptOption = Annotated[bool, typer.Option("--interrupt", help="End a run that is active or was killed.")]
StopCommandOption = Annotated[
    str | None,
    typer.Option(
        "--stop-command", metavar="CMD", help="Command that stops clients. Overrides ferry.switch.stop.command."
    ),
]
StopUrlOption = Annotated[
    str | None,
    typer.Option("--stop-url", metavar="URL", help="URL that stops clients. Overrides ferry.switch.stop.url."),
]
CommandOption = Annotated[
    str | None,
    typer.Option(
        "--redirect-command",
        metavar="CMD",
        help="Command that redirects clients. Overrides ferry.switch.redirect.command.",
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--redirect-url", metavar="URL", help="URL that redirects clients. Overrides ferry.switch.redirect.url."
    ),
]
MaxRecordsOption = Annotated[
    int | None,
    typer.Option(
        "--rpo-records", min=0, metavar="N", help="RPO of a partition in records. Overrides ferry.rpo.records."
    ),
]
MaxSecondsOption = Annotated[
    float | None,
    lasting("--rpo-seconds", "RPO of a partition as a time. Overrides ferry.rpo.seconds.", most=LONG_MAX),
]

_FIELDS = {
    "lost_at": "lost_at_ms",
    "quiet_timeout": "quiet_timeout_seconds",
    "drain_timeout": "drain_timeout_seconds",
    "leave_group": "leave_groups",
    "leave_topic": "leave_topics",
    "max_records": "rpo_records",
    "max_seconds": "rpo_seconds",
    "no_smoke": "smoke",
    "no_reverse": "reverse",
    "output": "export",
}
"""The fields of a switch's options that have other names than the parameters of the commands."""


def given_options(names: Iterable[str]) -> dict[str, str]:
    """Return the switch options on the command line as they are written, by their fields.

    `names` are the parameters that are given there.
    """
    fields = {name: _FIELDS.get(name, name) for name in names}
    kept = set(SwitchOptions.__dataclass_fields__)
    return {field: "--" + name.replace("_", "-") for name, field in fields.items() if field in kept}
