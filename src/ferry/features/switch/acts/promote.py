"""Declare the new cluster the one that clients use: check the old one for the last time, and remove the write block."""

from __future__ import annotations

from ferry.errors import Refused
from ferry.features.switch.acts.engine import StillMine
from ferry.features.switch.acts.groups import move_again
from ferry.features.switch.acts.quiet import groups_at_work, moved_since
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.acts.write_block import remove_block
from ferry.kafka.admin.acls import NoAuthorizer
from ferry.lane.connections import FlowConnections
from ferry.messages.catalogue import sentence
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
    blocked, acls = _unblocked(sides, state, still_mine, patience_s)
    moved = ""
    if again:
        had = agreeing(
            len(again), "group had other offsets meanwhile, and is", "groups had other offsets meanwhile, and are"
        )
        moved = f"; {had} moved again ({several(again)})"
    return Evidence(
        sentence=f"{sides.new} is the cluster that clients use{blocked}{moved}",
        facts={**acls, "moved_again": again},
    )


def _unblocked(
    sides: Sides, state: SwitchState, still_mine: StillMine, patience_s: float
) -> tuple[str, dict[str, list[str]]]:
    """Delete ACLs that deny WRITE if the switch is to. Return the end of the sentence, and the facts."""
    if not state.switch.options.remove_write_block:
        return "", {"removed_acls": []}
    try:
        found = remove_block(sides, state, still_mine, patience_s=patience_s)
    except NoAuthorizer as error:
        return f"; no write block is there: {error}", {"removed_acls": [], "left_acls": []}
    gone = agreeing(len(found.own), "ACL that denied WRITE is", "ACLs that denied WRITE are")
    deleted = f", {gone} deleted" if found.own else ""
    left = f"; {found.left_sentence(sides.new)}" if found.wider else ""
    return f"{deleted}{left}", {"removed_acls": [*map(str, found.own)], "left_acls": [*map(str, found.wider)]}


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
