"""`ferry groups FLOW`: the usual table of a group (offset, log size, lag, owner), for both sides of a flow."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferry.cli.command import Context, command
from ferry.cli.output import Figure, echo, print_json_list, print_table
from ferry.features.groups.cli.forms import TABLE
from ferry.model import TopicPartition

if TYPE_CHECKING:
    from ferry.features.groups.acts.table import GroupsFound
    from ferry.features.groups.rules.table import GroupHead, GroupOffset, GroupTable

COLUMNS = ["group", "topic", "partition", "side", "offset", "log size", "lag", "owner"]
NUMBERS = ["partition", "offset", "log size", "lag"]
MOST_SENTENCES = 20
INCOMPLETE = 1


@command(table=True)
def show_command(
    context: Context,
    group: Annotated[
        list[str] | None, typer.Option("--group", metavar="GROUP", help="Only this group. May be repeated.")
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", metavar="TOPIC,...", help="Only this topic, by its name on either side. May be repeated."
        ),
    ] = None,
    broker_info: Annotated[bool, typer.Option("--broker-info", help="Show the brokers of both clusters, too.")] = False,
) -> int:
    """Show the offsets of consumer groups on both clusters, and what the source's offsets translate to on the target.

    Exit code 1 when something could not be shown; a side that does not answer is named, and the other one is shown.
    """
    from ferry.features.groups.acts.table import find_groups  # noqa: PLC0415 - brings the Kafka clients

    chosen = context.flow()
    topics = [name.strip() for names in topic or () for name in names.split(",") if name.strip()]
    found = find_groups(chosen, groups=group or (), topics=topics, patience_s=context.patience_s)
    if context.as_json:
        body: dict[str, Any] = {
            "flow": str(chosen.flow),
            "not_shown": [asdict(one) for one in found.not_shown],
            "brokers": _brokers_json(found) if broker_info else None,
        }
        print_json_list(body, "groups", (TABLE.dump(table) for table in found.tables))
    else:
        context.answer(dict, lambda: _show(found, broker_info=broker_info))
    for one in found.not_shown[:MOST_SENTENCES]:
        echo(f"ferry: {' '.join(one.why.split())}", file=sys.stderr)
    if len(found.not_shown) > MOST_SENTENCES:
        echo(f"ferry: {len(found.not_shown) - MOST_SENTENCES} more are in the answer with --json", file=sys.stderr)
    return INCOMPLETE if found.not_shown else 0


def _show(found: GroupsFound, *, broker_info: bool) -> None:
    print_table(COLUMNS, (line for table in found.tables for line in lines(table)), right=NUMBERS)
    if broker_info:
        echo()
        brokers = [[row["cluster"], row["broker"], row["address"]] for row in _brokers_json(found)]
        print_table(["cluster", "broker", "address"], brokers, right=["broker"])


def lines(table: GroupTable) -> Iterator[list[object]]:
    """Make the lines of one group: up to three for each partition, one below the other, so that offsets compare."""
    for row in table.rows:
        if row.source is not None and row.at_source is not None:
            yield _line(table.group, row.source, "source", row.at_source, _owner(row.at_source, table.source))
        if row.target is not None and row.translated is not None and row.outcome is not None:
            side = "translated" if row.outcome.word == "exact" else f"translated ({row.outcome.word})"
            yield _line(table.group, row.target, side, row.translated, "")
        if row.target is not None and row.at_target is not None:
            yield _line(table.group, row.target, "target", row.at_target, _owner(row.at_target, table.target))
    if not table.rows and (table.source or table.target):
        for side, head in (("source", table.source), ("target", table.target)):
            if head is not None:
                yield [table.group, None, None, f"{side} (no offsets)", None, None, None, _members(head)]


def _line(group: str, place: TopicPartition, side: str, standing: GroupOffset, owner: str | None) -> list[object]:
    lag = standing.lag
    shown = Figure(lag, f"{-lag} beyond the end") if lag is not None and lag < 0 else lag
    return [group, place.topic, place.partition, side, standing.offset, standing.log_size, shown, owner]


def _owner(standing: GroupOffset, head: GroupHead | None) -> str | None:
    """Return client and host, as Kafka's tools print them; `none` if no member reads the partition."""
    if standing.owner is None:
        return None if head is None or head.members is None else "none"
    return f"{standing.owner.client_id}{standing.owner.host}"


def _members(head: GroupHead) -> str | None:
    if head.members is None:
        return f"{head.kind} group" if head.kind in ("share", "streams") else None
    return f"{head.members} members" if head.members else "none"


def _brokers_json(found: GroupsFound) -> list[dict[str, object]]:
    return [
        {"cluster": cluster, "broker": node, "address": address}
        for cluster, brokers in found.brokers.items()
        for node, address in brokers.items()
    ]
