"""`ferry lanes list|drop`: list the lanes of a flow, and drop one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.identity import new_run, person
from ferry.cli.output import echo, print_table
from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.protocol.names import position_group
from ferry.words import count_of, to_the_second

if TYPE_CHECKING:
    from ferry.features.lanes.acts.dropping import Drop
    from ferry.features.lanes.rules.listing import Lane


@command(table=True)
def list_command(
    context: Context,
) -> int:
    """List the lanes in the flow's ledger. Asks only the target."""
    from ferry.features.lanes.acts.listing import list_lanes  # noqa: PLC0415 - brings the Kafka clients
    from ferry.features.lanes.cli.forms import lane_json  # noqa: PLC0415 - as above

    chosen = context.flow()
    lanes = list_lanes(chosen, patience_s=context.patience_s)
    context.answer(
        lambda: {"flow": str(chosen.flow), "lanes": [lane_json(chosen.flow, lane) for lane in lanes]},
        lambda: _show_lanes(chosen, lanes),
    )
    return 0


def _show_lanes(flow: FlowConfig, lanes: Sequence[Lane]) -> None:
    print_table(
        ["lane", "topics", "partitions", "offsets", "records", "windows", "left", "last run", "state", "group"],
        (
            [
                lane.name,
                len(lane.topics),
                len(lane.parts),
                sum(end - start for part in lane.parts for start, end in part.ranges),
                lane.records,
                lane.windows,
                lane.left,
                lane.last_run.opened.record.run if lane.last_run is not None else None,
                lane.last_run.state.value if lane.last_run is not None else None,
                _group(flow, lane.name),
                lane.uncounted or None,
            ]
            for lane in lanes
        ),
        right=["topics", "partitions", "offsets", "records", "windows", "left"],
        only_csv="not counted",
    )
    for lane in lanes:
        if lane.uncounted:
            echo(f"not counted of lane {lane.name}: {lane.uncounted}")


@command()
def drop_command(
    context: Context,
    lane: Annotated[str, typer.Argument(metavar="LANE", help="A backfill-NAME, drill-NAME or append-NAME lane.")],
    earlier: Annotated[
        str | None, typer.Option("--flow", metavar="FLOW", help="Another spelling of the flow.", hidden=True)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm that topics are deleted.")] = False,
    interrupt: Annotated[
        bool,
        typer.Option("--interrupt", help="Drop even if a run of the lane is active or was killed, and end that run."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted. Writes nothing.")] = False,
) -> int:
    """Delete a lane's scratch topics, its group and its part of the ledger. Safe to repeat; never deletes the live
    lane.
    """
    from ferry.features.lanes.acts.dropping import RUN_PREFIX, LaneDrop  # noqa: PLC0415 - brings the Kafka clients
    from ferry.features.lanes.cli.forms import drop_json  # noqa: PLC0415 - as above
    from ferry.run.micro_run import local_origin  # noqa: PLC0415 - as above

    if earlier is not None and context.named is not None:
        raise BadInput(f"lanes drop names two flows, {context.named!r} and {earlier!r}: write FLOW LANE")
    chosen = context.flow_of(context.settings(), earlier)
    with LaneDrop(chosen, lane, patience_s=context.patience_s) as work:
        found = work.preview()
        if not dry_run and not yes and found.earlier is None:
            raise BadInput(
                f"lane {lane} has {count_of(len(found.topics), 'topic')} with {count_of(found.records, 'record')} on "
                f"{chosen.flow.target}{_uncounted(found)}, which would be deleted: check with --dry-run, then add "
                "--yes"
            )
        if not dry_run:
            found = work.drop(new_run(RUN_PREFIX.removesuffix("-")), local_origin(), person(), interrupt=interrupt)
    context.answer(lambda: drop_json(chosen.flow, found, dry_run=dry_run), lambda: _show(found, dry_run=dry_run))
    return 0


def _uncounted(found: Drop) -> str:
    return f" (not counted: {found.uncounted})" if found.uncounted else ""


def _group(flow: FlowConfig, lane: str) -> str:
    return position_group(flow.flow, lane)


def _show(found: Drop, *, dry_run: bool) -> None:
    if found.earlier is not None:
        echo(
            f"lane {found.lane} was dropped by {found.earlier.who} at {to_the_second(found.earlier.at_ms)}: "
            "nothing is left"
        )
        return
    for topic in found.topics:
        echo(f"{'would delete' if dry_run else 'deleted'} topic {topic}")
    echo(
        f"lane {found.lane} {'would be' if dry_run else 'is'} dropped: {count_of(len(found.topics), 'topic')}, "
        f"{count_of(found.records, 'record')}{_uncounted(found)}, group {found.group}"
    )
