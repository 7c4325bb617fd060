"""`ferry acls diff`: how the target's ACLs differ from what the source's ask for."""

from __future__ import annotations

from dataclasses import astuple

from ferry.cli.command import Context, command
from ferry.cli.output import echo, print_table
from ferry.config.flow.flow import FlowConfig
from ferry.features.acls.cli.forms import acl_diff_json
from ferry.features.acls.rules.acls import AclDiff, unmapped_sentence, wide_sentence
from ferry.words import count_of


@command(table=True)
def diff_command(
    context: Context,
) -> int:
    """Show how the target's ACLs differ from those that follow from the source. Writes nothing.

    Exit code 1 when they differ, or a principal has no counterpart.
    """
    from ferry.features.acls.acts.diff import acl_diff  # noqa: PLC0415 - brings the Kafka clients
    from ferry.run.micro_run import MicroRuns  # noqa: PLC0415 - as above

    chosen = context.flow()
    with MicroRuns(chosen, patience_s=context.patience_s) as runs:
        diff, due_ms = acl_diff(runs)
    context.answer(
        lambda: acl_diff_json(chosen, diff, due_ms), lambda: show_diff(chosen, diff, due_ms), lambda: _table(diff)
    )
    return 1 if diff.changes or diff.unmapped else 0


def show_diff(flow: FlowConfig, diff: AclDiff, due_ms: int | None) -> None:
    """Print the differences; `due_ms` is after how long a run changes the ACLs, None: no run does."""
    for change in diff.changes:
        sign = "+" if change.kind == "create" else "-"
        echo(f"{sign} {change.binding}  (source: {change.source})")
    for binding in diff.kept:
        echo(f"kept: {binding} (the settings no longer require it)")
    for binding in diff.foreign:
        echo(f"kept: {binding} (Ferry's by the ledger alone: nothing else shows that it is of a copy)")
    for binding in diff.bereft:
        echo(f"kept: {binding} (the source lost all ACLs that Ferry took over, at once)")
    for out in diff.left_out:
        echo(f"left out: {out.binding} ({out.why})")
    unmapped = unmapped_sentence(diff)
    if unmapped is not None:
        echo(f"unmapped: {unmapped}")
    wide = wide_sentence(flow.flow, diff)
    if wide is not None:
        echo(f"note: {wide}")
    echo(
        f"{flow.flow}: {len(diff.created)} to create, {len(diff.deleted)} to delete, "
        f"{count_of(diff.in_step, 'ACL')} in step, {len(diff.left_out)} left out; {_when(due_ms)}"
    )


def _table(diff: AclDiff) -> None:
    """Print one table of the ACLs that differ or are kept."""
    found = [(change.kind, change.binding) for change in diff.changes]
    found += [("kept", binding) for binding in (*diff.kept, *diff.foreign, *diff.bereft)]
    columns = ["what", "resource type", "resource name", "pattern type", "principal", "host", "operation", "permission"]
    print_table(columns, ((what, *astuple(binding)) for what, binding in found))


def _when(due_ms: int | None) -> str:
    if due_ms is None:
        return "no run changes any (sync.topic.acls.enabled, sync.topic.acls.interval.seconds)"
    if due_ms == 0:
        return "the next run changes them"
    return f"runs change them again after {round(due_ms / 1000)} s (sync.topic.acls.interval.seconds)"
