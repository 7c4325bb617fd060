"""Declare the new cluster the one that clients use: check the old one for the last time, and remove the write block."""

from __future__ import annotations

from functools import partial

from ferry.errors import Refused
from ferry.features.switch.acts.engine import StillMine
from ferry.features.switch.acts.groups import move_again
from ferry.features.switch.acts.quiet import groups_at_work, moved_since
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.names import written_names
from ferry.kafka.admin.acls import NoAuthorizer, delete_acls, described_acls
from ferry.lane.connections import FlowConnections, TargetConnection
from ferry.messages.catalogue import sentence
from ferry.model import AclBinding
from ferry.model.switch import Evidence, Step, SwitchState, Verb
from ferry.words import agreeing, several


def promote(sides: Sides, state: SwitchState, still_mine: StillMine, *, patience_s: float) -> Evidence:
    """Promote the new cluster.

    Raises Refused if records or consumers came to the old one after its drain, but in a failover. Groups keep the
    offsets that they were moved to: a checkpoint that a run committed late is replaced.
    """
    if state.switch.verb is not Verb.FAILOVER:
        _refuse_moved(sides, state, patience_s)
    again = move_again(sides, state, still_mine, patience_s=patience_s)
    removed: list[AclBinding] = []
    note = ""
    if state.switch.options.remove_write_block:
        topics = written_names(sides.via, (row["topic"] for row in state.rows(Step.STOP)), sides.clusters)
        with TargetConnection.of(sides.via, patience_s=patience_s) as connection:
            try:
                removed = connection.run(partial(_remove_block, connection, topics, still_mine))
            except NoAuthorizer as error:
                note = f"; no write block is there: {error}"
    blocked = f", {len(removed)} ACLs that denied WRITE are deleted" if removed else note
    moved = ""
    if again:
        had = agreeing(
            len(again), "group had other offsets meanwhile, and is", "groups had other offsets meanwhile, and are"
        )
        moved = f"; {had} moved again ({several(again)})"
    return Evidence(
        sentence=f"{sides.new} is the cluster that clients use{blocked}{moved}",
        facts={"removed_acls": [str(one) for one in removed], "moved_again": again},
    )


async def _remove_block(connection: TargetConnection, topics: set[str], still_mine: StillMine) -> list[AclBinding]:
    """Delete DENY WRITE ACLs that name one of these topics. One with a prefix stays, because it covers more topics."""
    blocks = sorted(
        (
            one
            for one in await described_acls(connection.target)
            if one.resource_type == "topic"
            and one.pattern_type == "literal"
            and one.resource_name in topics
            and (one.operation, one.permission) == ("Write", "deny")
        ),
        key=str,
    )
    if blocks:
        still_mine()
    for error in (await delete_acls(connection.target, blocks)).values():
        raise error
    return blocks


def _refuse_moved(sides: Sides, state: SwitchState, patience_s: float) -> None:
    rows = state.rows(Step.DRAIN)

    async def work() -> tuple[list[str], set[str]]:
        moved = await moved_since(sides.via, connections.source, rows)
        return moved, await groups_at_work(sides.via, connections.source, switch.options)

    switch = state.switch
    with FlowConnections.of(sides.via, patience_s=patience_s) as connections:
        moved, active = connections.run(work)
    facts = {"cluster": sides.old, "named": str(switch.named), "switch": switch.id}
    if active:
        names = several(sorted(active))
        raise Refused(sentence("switch.members.twice", groups=len(active), names=names, **facts))
    if moved:
        raise Refused(sentence("switch.grew.after-drain", partitions=len(moved), names=several(moved), **facts))
