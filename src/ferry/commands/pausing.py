"""`ferry pause` and `ferry resume`: hold a flow, or one topic of it, back from the next plan on."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.completion import offered_topics
from ferry.cli.identity import person
from ferry.cli.output import echo, print_warning
from ferry.clock import wall_ms
from ferry.errors import BadInput
from ferry.words import ms_of

TopicOption = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="One source topic. If omitted: the whole flow.",
        autocompletion=offered_topics,
    ),
]


@command()
def pause_command(
    context: Context,
    why: Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason, for other operators.")],
    topic: TopicOption = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="TIME",
            help="When the pause ends: ISO 8601 with a time zone, for example 2026-01-31T06:00:00Z.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be paused. Writes nothing.")] = False,
) -> int:
    """Stop planning a flow or topic, until the given time or until ferry resume.

    A run under way is not touched. The pause is a record of the ledger, with who, why and until when.
    """
    from ferry.commands.forms import pause_json  # noqa: PLC0415 - brings the Kafka clients
    from ferry.config.flow.flow import refuse_foreign_topic  # noqa: PLC0415 - as above
    from ferry.model import Pause  # noqa: PLC0415 - as above
    from ferry.run.ledger.access import LedgerAccess  # noqa: PLC0415 - as above
    from ferry.run.ledger.pausing import write_pause  # noqa: PLC0415 - as above

    chosen = context.flow()
    now_ms = wall_ms()
    if not why.strip():
        raise BadInput("--reason is empty: give the reason, for other operators")
    pause = Pause(topic=topic or "", who=person(), why=why.strip(), since_ms=now_ms, until_ms=_until_ms(until, now_ms))
    if topic is not None:
        refuse_foreign_topic(chosen, topic)
    with LedgerAccess(chosen, patience_s=context.patience_s) as ledger:
        write_pause(ledger, pause, dry_run=dry_run)
    what = f"topic {topic} of {chosen.flow}" if topic else str(chosen.flow)
    done, end = "would be" if dry_run else "is", f"until {until}" if until else "until resumed"
    context.answer(
        lambda: {"flow": str(chosen.flow), **pause_json(pause), "dry_run": dry_run},
        lambda: echo(f"{what} {done} paused {end}, by {pause.who}: {pause.why}"),
    )
    return 0


@command()
def resume_command(
    context: Context,
    topic: TopicOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show which pause would be ended. Writes nothing.")
    ] = False,
) -> int:
    """End a pause. The next plan continues the flow or topic where it stopped."""
    from ferry.run.ledger.access import LedgerAccess  # noqa: PLC0415 - brings the Kafka clients
    from ferry.run.ledger.pausing import lift_pause, pause_in_force  # noqa: PLC0415 - as above

    chosen = context.flow()
    with LedgerAccess(chosen, patience_s=context.patience_s) as ledger:
        if dry_run:
            lifted = pause_in_force(ledger, topic or "", wall_ms())
        else:
            lifted = lift_pause(ledger, topic or "", person(), wall_ms())
    what = f"topic {topic} of {chosen.flow}" if topic else str(chosen.flow)
    if lifted is None:
        sentence = f"{what} {'is' if dry_run else 'was'} not paused"
    else:
        sentence = (
            f"{what} {'would be' if dry_run else 'is'} resumed; it was paused by {lifted.pause.who}: {lifted.pause.why}"
        )
    of = lifted.switch if lifted is not None else None
    context.answer(
        lambda: {
            "flow": str(chosen.flow),
            "topic": topic,
            "was_paused": lifted is not None,
            "switch": of.id if of is not None else None,
            "dry_run": dry_run,
        },
        lambda: echo(sentence),
    )
    if lifted is not None and lifted.warning is not None and not context.quiet:
        print_warning(str(lifted.warning))
    return 0


def _until_ms(text: str | None, now_ms: int) -> int:
    if text is None:
        return 0
    remedy = "write a future time with a time zone, for example 2026-01-31T06:00:00Z"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"--until {text!r} is not an ISO 8601 time: {remedy}") from None
    if moment.tzinfo is None:
        raise BadInput(f"--until {text!r} has no time zone: {remedy}")
    until_ms = ms_of(moment)
    if until_ms <= now_ms:
        raise BadInput(f"--until {text!r} is in the past: {remedy}")
    return until_ms
