"""`ferry migrate hand-back`: let MirrorMaker 2 continue at the positions of a flow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.command import Context, command, only_topics
from ferry.cli.identity import new_run, person
from ferry.cli.options import TopicsOption
from ferry.cli.output import echo, print_table, print_warning
from ferry.errors import BadInput
from ferry.features.migrate.cli.adopt import ConnectorOption, OffsetsTopicOption, StatusTopicOption, WorkersOption
from ferry.features.migrate.cli.forms import hand_back_json
from ferry.features.migrate.rules.hand_back import Handed
from ferry.files import refuse_taken
from ferry.words import count_of

if TYPE_CHECKING:
    from ferry.features.migrate.acts.hand_back import HandedBack

NOT_ALL = 1
"""The exit code if a partition could not be handed back."""


@command(table=True)
def hand_back_mm2_command(
    context: Context,
    topics: TopicsOption = None,
    offsets_topic: OffsetsTopicOption = None,
    connector: ConnectorOption = None,
    group: WorkersOption = None,
    status_topic: StatusTopicOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Write the positions into this file, not into the topic: a JSON object with key and value per line.",
        ),
    ] = None,
    create: Annotated[
        bool,
        typer.Option(
            "--create", help="Create the offsets topic if it does not exist, because MirrorMaker 2 never ran there."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be handed back. Writes nothing.")] = False,
) -> int:
    """Write the flow's positions into MirrorMaker 2's offsets topic, so that it continues without loss or duplicates.

    The flow is paused with it, unless --topic names some topics: `ferry migrate mm2` takes it back, or `ferry resume`
    when MirrorMaker 2 was never started. Exit code 1: some partitions could not be handed back.
    """
    from ferry.features.migrate.acts.at_rest import Mm2Place  # noqa: PLC0415 - brings the Kafka clients
    from ferry.features.migrate.acts.hand_back import HandBackOptions, hand_back, preview_hand_back  # noqa: PLC0415 - as above
    from ferry.run.micro_run import MicroRuns, local_origin  # noqa: PLC0415 - as above

    chosen = context.flow()
    if output is not None and not dry_run:
        refuse_taken(output, name=f"--output {output}")
    if create and output is not None:
        raise BadInput("--create is for the topic, and --output for a file: omit one of the two")
    place = Mm2Place.of(
        chosen.flow.source,
        offsets_topic=offsets_topic,
        connector=connector,
        group=group,
        status_topic=status_topic,
    )
    options = HandBackOptions(who=person(), only=only_topics(chosen, topics), output=output, create=create)
    run = None if dry_run else new_run("hand-back")
    with MicroRuns(chosen, patience_s=context.patience_s) as runs:
        found = (
            preview_hand_back(runs, place, options)
            if run is None
            else hand_back(runs, place, options, run, local_origin())
        )
    where = place.offsets_topic if output is None else str(output)
    context.answer(
        lambda: hand_back_json(chosen.flow, run, place.offsets_topic, place.connector, found),
        lambda: _print(found, where, dry_run=dry_run, quiet=context.quiet),
    )
    return NOT_ALL if any(row.verdict is Handed.REFUSED for row in found.rows) else 0


def _print(found: HandedBack, where: str, *, dry_run: bool, quiet: bool) -> None:
    numbers = ("continues at", "was")
    print_table(
        ("topic", "partition", *numbers, "outcome"),
        (
            (
                row.source.topic,
                row.source.partition,
                row.position if row.position >= 0 else None,
                row.was if row.was >= 0 else None,
                row.verdict.value,
            )
            for row in found.rows
            if row.verdict is not Handed.NOTHING
        ),
        right=("partition", *numbers),
    )
    for row in found.rows:
        if row.why:
            echo(f"{row.source}: {row.verdict.value}: {row.why}")
    for note in found.notes if not quiet else ():
        print_warning(note)
    written = count_of(len(found.records), "position")
    if dry_run:
        echo(f"{written} would be written to {where}")
    else:
        state = (
            "the flow is paused until ferry migrate mm2 or ferry resume" if found.pauses else "the flow is not paused"
        )
        echo(f"{written} written to {where}; {state}")
