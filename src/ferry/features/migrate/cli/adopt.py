"""`ferry migrate`: continue where another replicator was stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.command import Context, command, only_topics
from ferry.cli.identity import new_run, person
from ferry.cli.options import TopicsOption
from ferry.cli.output import Figure, echo, print_table, print_warning
from ferry.cli.progress_bar import working
from ferry.config.flow.flow import FlowConfig
from ferry.features.migrate.cli.forms import adoption_json
from ferry.features.migrate.rules.adoption import Row, Takeover, Verdict
from ferry.words import count_of

if TYPE_CHECKING:
    from ferry.features.migrate.acts.adopting import PredecessorPlace

NOT_ALL = 1
"""The exit code if a partition could not be adopted."""

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be adopted. Writes nothing.")]
AlignOption = Annotated[
    bool,
    typer.Option(
        "--align",
        help="Begin after the copy's last record if that is certain, even if the replicator's position differs.",
    ),
]
OffsetsTopicOption = Annotated[
    str | None,
    typer.Option(
        "--offsets-topic",
        metavar="TOPIC",
        help="offset.storage.topic of the Kafka Connect workers, on the target. Default for a dedicated one: "
        "mm2-offsets.{source}.internal.",
    ),
]
ConnectorOption = Annotated[
    str | None,
    typer.Option("--connector", metavar="NAME", help="Name of the source connector. Default: MirrorSourceConnector."),
]
WorkersOption = Annotated[
    str | None,
    typer.Option(
        "--worker-group", metavar="GROUP", help="group.id of the workers. Default for a dedicated one: {source}-mm2."
    ),
]
StatusTopicOption = Annotated[
    str | None,
    typer.Option(
        "--status-topic",
        metavar="TOPIC",
        help="status.storage.topic of the Kafka Connect workers, whose group stays when the connector is stopped.",
    ),
]


@command(table=True)
def adopt_mm2_command(
    context: Context,
    topics: TopicsOption = None,
    offsets_topic: OffsetsTopicOption = None,
    connector: ConnectorOption = None,
    group: WorkersOption = None,
    status_topic: StatusTopicOption = None,
    align: AlignOption = False,
    dry_run: DryRunOption = False,
) -> int:
    """Take over from a stopped MirrorMaker 2, dedicated or on Kafka Connect. The next run continues where it stopped.

    Its positions are read from its offsets topic on the target, and compared with both logs. Nothing of MirrorMaker 2's
    is changed. Exit code 1: some partitions could not be adopted.
    """
    from ferry.features.migrate.acts.at_rest import Mm2Place  # noqa: PLC0415 - brings the Kafka clients

    chosen = context.flow()
    place = Mm2Place.of(
        chosen.flow.source,
        offsets_topic=offsets_topic,
        connector=connector,
        group=group,
        status_topic=status_topic,
    )
    return _adopt(context, chosen, place, topics, align=align, dry_run=dry_run)


@command(table=True)
def adopt_mm1_command(
    context: Context,
    group: Annotated[
        str, typer.Option("--group", metavar="GROUP", help="group.id from MirrorMaker 1's consumer file.")
    ],
    topics: TopicsOption = None,
    dry_run: DryRunOption = False,
) -> int:
    """Take over from a stopped MirrorMaker 1, using the offsets of its consumer group on the source.

    Exit code 1: some partitions could not be adopted.
    """
    from ferry.features.migrate.acts.adopting import Mm1Place  # noqa: PLC0415 - brings the Kafka clients

    chosen = context.flow()
    return _adopt(context, chosen, Mm1Place(group=group), topics, align=False, dry_run=dry_run)


def _adopt(
    context: Context,
    flow: FlowConfig,
    place: PredecessorPlace,
    topics: list[str] | None,
    *,
    align: bool,
    dry_run: bool,
) -> int:
    from ferry.features.migrate.acts.adopting import AdoptionOptions, adopt, preview_adoption  # noqa: PLC0415 - brings the Kafka clients
    from ferry.run.micro_run import MicroRuns, local_origin  # noqa: PLC0415 - as above

    options = AdoptionOptions(who=person(), only=only_topics(flow, topics), align=align)
    run = None if dry_run else new_run("adopt")
    sentence = f"Comparing the positions that the predecessor of {flow.flow} left with both logs"
    with working(sentence, quiet=context.quiet), MicroRuns(flow, patience_s=context.patience_s) as runs:
        if run is None:
            found = preview_adoption(runs, place, options)
        else:
            found = adopt(runs, place, options, run, local_origin())
            run = run if found.of(Verdict.ADOPT) else None
    context.answer(
        lambda: adoption_json(flow.flow, run, found), lambda: _print(found, dry_run=dry_run, quiet=context.quiet)
    )
    return NOT_ALL if found.of(Verdict.REFUSED) else 0


def _print(found: Takeover, *, dry_run: bool, quiet: bool) -> None:
    numbers = ("position", "source start", "source end", "target end", "lost", "doubled")
    rows = [row for row in found.rows if row.verdict is not Verdict.NOTHING]
    print_table(
        ("topic", "partition", *numbers, "copy's end", "outcome"),
        (
            (
                row.source.topic,
                row.source.partition,
                *(None if value < 0 else value for value in (row.position, row.log_start, row.source_end)),
                None if row.target_end < 0 else row.target_end,
                row.lost,
                _doubled(row),
                row.seam.state.value,
                f"would {row.verdict}" if dry_run and row.verdict is Verdict.ADOPT else _outcome(row),
                "exact" if row.doubled is not None else "at most",
            )
            for row in rows
        ),
        right=("partition", *numbers),
        only_csv="doubled is",
    )
    for row in rows:
        if row.why:
            echo(f"{row.source}: {row.verdict.value}: {row.why}")
    for note in found.notes if not quiet else ():
        print_warning(note)
    adopted, refused = found.of(Verdict.ADOPT), found.of(Verdict.REFUSED)
    doubled = sum(row.doubled or 0 for row in adopted)
    unknown = sum(row.doubled is None for row in adopted)
    lost = sum(row.lost for row in adopted)
    echo(
        f"{count_of(len(adopted), 'partition')} {'would be ' if dry_run else ''}adopted from {found.left.what} by "
        f"{found.left.where}, {len(refused)} refused; lost {lost}, at most {doubled} doubled"
        + (f", and not known for {count_of(unknown, 'partition')}" if unknown else "")
        + ("" if dry_run or not adopted else "; next: ferry plan")
    )


def _doubled(row: Row) -> Figure | int:
    most = max(0, row.source_end - row.position)
    return Figure(most, f"up to {most}") if row.doubled is None else row.doubled


def _outcome(row: Row) -> str:
    return {Verdict.ADOPT: "adopted", Verdict.UNCHANGED: "as it was"}.get(row.verdict, row.verdict.value)
