"""`ferry groups snapshot`, `snapshots`, `diff`, `rollback`: offsets that groups had on the target, in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.identity import new_run, person
from ferry.cli.output import echo, print_table
from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.features.groups.cli.forms import SNAPSHOT
from ferry.features.groups.cli.sync import DryRunOption, GroupsOption, only_groups
from ferry.features.groups.rules.codec import Snapshot
from ferry.features.groups.rules.kept_snapshots import made_by
from ferry.features.groups.rules.sentences import group_sentences
from ferry.ledger.checkpoint_codec import left_json
from ferry.model import WANTED
from ferry.words import count_of, to_the_second

SnapshotOption = Annotated[
    str | None,
    typer.Option(
        "--snapshot",
        metavar="NAME",
        help="A snapshot's name, or a run ID: the offsets before that run. Default: the newest.",
    ),
]


@command(table=True)
def snapshot_command(
    context: Context,
    name: Annotated[
        str | None, typer.Option("--snapshot", metavar="NAME", help="Name of the snapshot. Generated if omitted.")
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Another spelling.", hidden=True)] = False,
    drop: Annotated[str | None, typer.Option("--drop", metavar="NAME", help="Another spelling.", hidden=True)] = None,
    group: GroupsOption = None,
    dry_run: DryRunOption = False,
) -> int:
    """Save the groups' current offsets on the target in the ledger, until the snapshot is dropped.

    Each run that writes offsets also saves the ones that it replaces, under its own id. The last ten are kept.
    """
    from ferry.features.groups.acts.snapshots import GroupSnapshots  # noqa: PLC0415 - brings the Kafka clients

    if (listing or drop is not None) and (name is not None or group or (listing and drop is not None)):
        raise BadInput("--list and --drop take no snapshot: write ferry groups snapshots list, or drop NAME")
    if listing:
        return _list(context, dry_run=dry_run)
    if drop is not None:
        if not dry_run:
            raise BadInput(f"--drop deletes snapshot {drop}: write ferry groups snapshots drop {drop} --yes")
        return _drop(context, drop, dry_run=dry_run)
    context.refuse_csv("a snapshot that is taken")
    chosen = context.flow()
    if name is not None and not name.strip():
        raise BadInput("--snapshot is empty: give the snapshot a name, or omit the option")
    with GroupSnapshots(chosen, patience_s=context.patience_s) as kept:
        found = kept.take(name or new_run("snapshot"), person(), only_groups(group), dry_run=dry_run)
    _answer(context, chosen, [found], lambda: _show_one(found, _done("kept", dry_run=dry_run)), dry_run=dry_run)
    return 0


@command(table=True)
def list_command(context: Context) -> int:
    """List the snapshots of the groups' offsets that the ledger keeps."""
    return _list(context, dry_run=False)


@command()
def drop_command(
    context: Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The snapshot's name, as ferry groups snapshots list shows it.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Confirm that the snapshot is deleted.")] = False,
    dry_run: DryRunOption = False,
) -> int:
    """Delete a snapshot of the groups' offsets from the ledger. No group is changed."""
    if not yes and not dry_run:
        raise BadInput(
            f"snapshot {name} would be deleted, and nothing brings it back: check with --dry-run, then add --yes"
        )
    return _drop(context, name, dry_run=dry_run)


def _list(context: Context, *, dry_run: bool) -> int:
    from ferry.features.groups.acts.snapshots import GroupSnapshots  # noqa: PLC0415 - brings the Kafka clients

    chosen = context.flow()
    with GroupSnapshots(chosen, patience_s=context.patience_s) as kept:
        found = kept.all()
    _answer(context, chosen, found, lambda: _show_list(found), dry_run=dry_run)
    return 0


def _drop(context: Context, name: str, *, dry_run: bool) -> int:
    from ferry.features.groups.acts.snapshots import GroupSnapshots  # noqa: PLC0415 - brings the Kafka clients

    context.refuse_csv("a snapshot that is dropped")
    chosen = context.flow()
    with GroupSnapshots(chosen, patience_s=context.patience_s) as kept:
        found = kept.drop(name, dry_run=dry_run)
    _answer(context, chosen, [found], lambda: _show_one(found, _done("dropped", dry_run=dry_run)), dry_run=dry_run)
    return 0


def _done(word: str, *, dry_run: bool) -> str:
    return f"would be {word}" if dry_run else word


def _answer(
    context: Context, flow: FlowConfig, found: Sequence[Snapshot], show: Callable[[], object], *, dry_run: bool
) -> None:
    snapshots = [SNAPSHOT.dump(one) for one in found]
    context.answer(lambda: {"flow": str(flow.flow), "dry_run": dry_run, "snapshots": snapshots}, show)


def _show_list(found: Sequence[Snapshot]) -> None:
    rows = [(one.name, to_the_second(one.at_ms), one.who or made_by(one.name), one.groups) for one in found]
    print_table(("snapshot", "taken", "by", "groups"), rows, right=("groups",))


def _show_one(one: Snapshot, done: str) -> None:
    echo(f"snapshot {one.name} with {count_of(one.groups, 'group')} {done}")


@command(table=True)
def diff_command(
    context: Context,
    snapshot: SnapshotOption = None,
    group: GroupsOption = None,
) -> int:
    """Show which groups' offsets on the target differ from a snapshot. Exit 1 if any does, or could not be read."""
    from ferry.features.groups.acts.snapshots import GroupSnapshots  # noqa: PLC0415 - brings the Kafka clients

    chosen = context.flow()
    with GroupSnapshots(chosen, patience_s=context.patience_s) as kept:
        found, differ, unknown = kept.diff(snapshot, only_groups(group))
    columns = ("group", "topic", "partition", "then", "now")
    rows = [(one.group, one.place.topic, one.place.partition, one.then, one.now) for one in differ]

    def show() -> None:
        print_table(columns, rows, right=("partition", "then", "now"), omit=True)
        verb = "differs" if len(rows) == 1 else "differ"
        echo(f"{count_of(len(rows), 'offset')} {verb} from snapshot {found.name} of {to_the_second(found.at_ms)}")
        for one in unknown:
            echo(f"not compared: {one.message}")

    differences = [dict(zip(columns, row, strict=True)) for row in rows]
    context.answer(
        lambda: {
            "flow": str(chosen.flow),
            "snapshot": SNAPSHOT.dump(found),
            "differences": differences,
            "not_compared": [left_json(one) for one in unknown],
        },
        show,
    )
    return 1 if differ or unknown else 0


@command(table=True)
def rollback_command(
    context: Context,
    snapshot: SnapshotOption = None,
    group: GroupsOption = None,
    dry_run: DryRunOption = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write even if another client moved the offset since Ferry wrote it.")
    ] = False,
) -> int:
    """Write a snapshot's offsets back to the target's groups that have no members. The current offsets are saved, too.

    Runs leave them there from then on: `ferry groups sync --force` has them follow the source again. Exit code 1 when
    one was not written back.
    """
    from ferry.features.groups.acts.snapshots import GroupSnapshots  # noqa: PLC0415 - brings the Kafka clients

    if not dry_run:
        context.refuse_csv("what was written to groups")
    chosen = context.flow()
    run = new_run("rollback")
    with GroupSnapshots(chosen, patience_s=context.patience_s) as kept:
        found, decided, done = kept.rollback(snapshot, run, only_groups(group), force=force, dry_run=dry_run)
    left = decided.left if done is None else done.left
    writes = [(name, place, at.offset) for name, places in decided.writes.items() for place, at in places.items()]

    def show() -> None:
        if done is None:
            print_table(("group", "partition", "back to"), writes, right=("back to",), omit=True)
            for one in left:
                echo(f"would be left: {one.message}")
            echo(f"{count_of(len(writes), 'offset')} would be written back to snapshot {found.name}")
            return
        for line in group_sentences(done):
            echo(line)
        if done.offsets:
            echo(f"undo it with ferry groups rollback --snapshot {run}; runs no longer move these groups' offsets")

    context.answer(
        lambda: {
            "flow": str(chosen.flow),
            "run": None if dry_run else run,
            "snapshot": SNAPSHOT.dump(found),
            "writes": [
                {"group": name, "topic": place.topic, "partition": place.partition, "offset": offset}
                for name, place, offset in writes
            ],
            "unchanged": decided.unchanged,
            "left": [left_json(one) for one in left],
        },
        show,
    )
    return 1 if any(one.why in WANTED for one in left) else 0
