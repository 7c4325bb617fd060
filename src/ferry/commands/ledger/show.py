"""`ferry ledger`: what was copied, when, by which run, and where an offset was copied to."""

from __future__ import annotations

from typing import Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.completion import offered_topics
from ferry.cli.options import LaneOption
from ferry.errors import BadInput

DEFAULT_RUNS = 20


@command(table=True)
def ledger_command(
    context: Context,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="Show this run's state, and only its receipts.")
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic", metavar="TOPIC", help="Show only receipts of this source topic.", autocompletion=offered_topics
        ),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, metavar="N", help="Show only receipts of this source partition.")
    ] = None,
    offset: Annotated[
        int | None,
        typer.Option("--offset", min=0, metavar="N", help="Show the receipt and segment with this source offset."),
    ] = None,
    runs: Annotated[bool, typer.Option("--runs", help="List runs with their states instead.")] = False,
    pauses: Annotated[bool, typer.Option("--pauses", help="List active pauses instead.")] = False,
    last: Annotated[
        int | None,
        typer.Option("--last", min=1, metavar="N", help=f"Show only the newest N (runs: {DEFAULT_RUNS} unless given)."),
    ] = None,
    lane: LaneOption = None,
) -> int:
    """Show receipts, runs and pauses of the ledger. Asks only the target.

    With --run alone it also shows what became of that run: what it refused, noted and left. With --offset, exit code 1
    when no receipt holds the offset. Of a repartitioned topic each target partition must have such a receipt.
    """
    from ferry.commands.ledger.looked_up import Asked  # noqa: PLC0415 - the help needs none of it
    from ferry.run.ledger.access import LedgerAccess  # noqa: PLC0415 - as above

    if offset is not None and topic is None:
        raise BadInput(f"--offset {offset} needs its topic: add --topic")
    if (runs or pauses) and ((runs and pauses) or [run, topic, partition, offset] != [None] * 4):
        raise BadInput("--runs and --pauses list everything: give one of them, without --run, --topic or --offset")
    if offset is not None:
        context.refuse_csv("where an offset went")
    chosen = context.flow(lane)
    with LedgerAccess(chosen, patience_s=context.patience_s) as access:
        asked = Asked(
            access=access,
            lane=chosen.lane,
            form=context.form,
            run=run,
            topic=topic,
            partition=partition,
            last=last,
        )
        if runs:
            return asked.runs(last or DEFAULT_RUNS)
        if pauses:
            return asked.pauses()
        return asked.receipts() if offset is None else asked.holders(offset)
