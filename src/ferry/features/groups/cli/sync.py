"""`ferry groups sync`: translate the groups' offsets by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.identity import new_run
from ferry.cli.output import echo, print_table
from ferry.cli.progress_bar import working
from ferry.features.groups.cli.forms import sync_json
from ferry.features.groups.rules.sentences import group_sentences
from ferry.model import WANTED, GroupOutcome
from ferry.words import count_of

if TYPE_CHECKING:
    from ferry.features.groups.acts.checkpoint import Looked

GroupsOption = Annotated[
    list[str] | None, typer.Option("--group", metavar="GROUP", help="Only this group. May be repeated.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be written. Writes nothing.")]


@command(table=True)
def sync_command(
    context: Context,
    group: GroupsOption = None,
    dry_run: DryRunOption = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Overwrite offsets that another client moved on the target, even backwards."),
    ] = False,
) -> int:
    """Translate the groups' offsets, and write them to the target's groups that have no members.

    Exit code 1 when a group that was to be written was not: the others are done, and each of these says why.
    """
    from ferry.features.groups.acts.of_run import sync_groups  # noqa: PLC0415 - brings the Kafka clients
    from ferry.run.micro_run import MicroRuns  # noqa: PLC0415 - as above

    if not dry_run:
        context.refuse_csv("what was written to groups")
    chosen = context.flow()
    run = new_run("groups")
    sentence = f"Translating the groups of {chosen.flow}"
    with working(sentence, quiet=context.quiet), MicroRuns(chosen, patience_s=context.patience_s) as runs:
        looked, done = sync_groups(runs, run, only=only_groups(group), force=force, dry_run=dry_run)
    context.answer(
        lambda: sync_json(chosen.flow, None if dry_run else run, looked, done),
        lambda: show_wish(looked) if done is None else _show_done(done),
    )
    return 1 if any(one.why in WANTED for one in (looked.left if done is None else done.left)) else 0


def _show_done(done: GroupOutcome) -> None:
    for line in group_sentences(done):
        echo(line)


def show_wish(looked: Looked) -> None:
    """Print which offsets `ferry groups sync` would write, and which it would leave."""
    rows = [
        (
            one.checkpoint.group,
            one.checkpoint.source.topic if one.checkpoint.read else one.checkpoint.source,
            one.checkpoint.source_offset,
            one.checkpoint.target,
            None if one.before is None else one.before.offset,
            one.checkpoint.target_offset,
            one.checkpoint.outcome,
        )
        for writes in looked.decided.writes.values()
        for one in writes
    ]
    head = ("group", "source", "offset", "target", "has", "would have", "translated")
    print_table(head, rows, right=("offset", "has", "would have"), omit=True)
    again = [one.checkpoint.again for writes in looked.decided.writes.values() for one in writes]
    counted, unknown = sum(one or 0 for one in again), count_of(again.count(None), "offset")
    if counted:
        more = f", and not known for {unknown}" if None in again else ""
        echo(f"{count_of(counted, 'record')} at most would be read again, of topics that get other partitions{more}")
    elif None in again:
        echo(f"how many records would be read again is not known for {unknown}")
    for one in looked.left:
        echo(f"would be left: {one.message}")
    echo(
        f"{count_of(len(rows), 'offset')} of {count_of(len(looked.decided.writes), 'group')} would be written, "
        f"{looked.decided.unchanged} are up to date"
    )


def only_groups(group: list[str] | None) -> frozenset[str] | None:
    """Return the groups that --group names; None: all."""
    return frozenset(group) if group else None
