"""The options that the commands about switches share."""

from __future__ import annotations

from typing import Annotated

import typer

from ferry.cli.options import YEAR_SECONDS
from ferry.model.switch import SwitchOptions

DEFAULT = SwitchOptions()

STOPPED = 4
"""Exit code: the switch has begun and stopped at a step; it is continued by its id."""

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The switch, as ferry switch list shows it.")]
IdOption = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="ID", help="The switch's id: made up when not given; that of an unfinished switch continues it."
    ),
]
ApproveOption = Annotated[
    str | None,
    typer.Option("--approve-by", metavar="NAME", help="Who approves; without it a person at the terminal is asked."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the steps and the checks; write nothing.")]
QuietSecondsOption = Annotated[
    float,
    typer.Option("--quiet-seconds", min=0, max=YEAR_SECONDS, metavar="N", help="So long no partition may grow."),
]
QuietTimeoutOption = Annotated[
    float,
    typer.Option(
        "--quiet-timeout", min=0, max=YEAR_SECONDS, metavar="N", help="How long to wait for that, in seconds."
    ),
]
DrainTimeoutOption = Annotated[
    float,
    typer.Option(
        "--drain-timeout", min=0, max=YEAR_SECONDS, metavar="N", help="How long the last records may take, in seconds."
    ),
]
LostAtOption = Annotated[
    str | None,
    typer.Option(
        "--lost-at",
        metavar="TIME",
        help="When the source was lost, as 2026-01-31T06:00:00Z: the report's RTO and the loss are counted from it.",
    ),
]
LeaveGroupOption = Annotated[
    list[str] | None, typer.Option("--leave-group", metavar="GROUP", help="Do not move this group; may be repeated.")
]
LeaveTopicOption = Annotated[
    list[str] | None,
    typer.Option(
        "--leave-topic",
        metavar="TOPIC",
        help="A copy that a transform made may stay behind, with what was written to it since; may be repeated.",
    ),
]
LeaveActiveOption = Annotated[
    bool, typer.Option("--leave-active", help="Leave groups that have members, instead of refusing.")
]
LeaveUnknownOption = Annotated[
    bool,
    typer.Option(
        "--leave-unknown", help="Go on though the ledger does not know all groups of the source, instead of refusing."
    ),
]
WriteBlockOption = Annotated[
    bool, typer.Option("--remove-write-block", help="Delete ACLs that deny WRITE on the new cluster's topics.")
]
NoSmokeOption = Annotated[bool, typer.Option("--no-smoke", help="Leave the smoke test out.")]
NoReverseOption = Annotated[bool, typer.Option("--no-reverse", help="Do not start the reverse flow.")]
InterruptOption = Annotated[bool, typer.Option("--interrupt", help="End a run that is at work, or was killed.")]
StopCommandOption = Annotated[
    str | None,
    typer.Option("--stop-command", metavar="CMD", help="Stops clients; in place of ferry.switch.stop.command."),
]
StopUrlOption = Annotated[
    str | None, typer.Option("--stop-url", metavar="URL", help="Stops clients; in place of ferry.switch.stop.url.")
]
CommandOption = Annotated[
    str | None,
    typer.Option("--redirect-command", metavar="CMD", help="In place of ferry.switch.redirect.command."),
]
UrlOption = Annotated[
    str | None, typer.Option("--redirect-url", metavar="URL", help="In place of ferry.switch.redirect.url.")
]
MaxRecordsOption = Annotated[
    int | None,
    typer.Option("--max-records", min=0, metavar="N", help="RPO of a partition, in place of ferry.rpo.records."),
]
MaxSecondsOption = Annotated[
    float | None,
    typer.Option("--max-seconds", min=0, metavar="N", help="RPO of a partition, in place of ferry.rpo.seconds."),
]
