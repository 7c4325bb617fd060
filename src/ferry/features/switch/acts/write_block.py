"""Read and delete the ACLs that deny producers to write on the new cluster."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ferry.errors import Refused
from ferry.features.switch.acts.earlier import earlier_switch
from ferry.features.switch.acts.engine import StillMine
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.names import written_names
from ferry.features.switch.rules.partition_state import recorded_partitions
from ferry.features.switch.rules.write_block import WriteBlock, write_block
from ferry.kafka.admin.acls import NoAuthorizer, delete_acls, described_acls
from ferry.lane.connections import TargetConnection
from ferry.ledger.receipts import last_receipts
from ferry.ledger.unit_codec import last_units
from ferry.model import sentence_of
from ferry.model.check import Check
from ferry.model.switch import Step, SwitchState, Verb


def check_block(sides: Sides, state: SwitchState, *, patience_s: float) -> list[Check]:
    """Make the check for a switch that deletes ACLs which deny WRITE; none for another switch.

    It fails if the ACLs may not be read, because then the switch could not delete them after clients have stopped.
    """
    if not state.switch.options.remove_write_block:
        return []
    try:
        with TargetConnection.of(sides.via, patience_s=patience_s) as connection:
            topics = connection.run(partial(_recorded, sides, connection))
            if sides.verb is Verb.FAILBACK:  # the flow back may not have run yet
                topics |= {row["topic"] for row in earlier_switch(sides, patience_s).rows(Step.STOP)}
            found = connection.run(partial(_block, sides, connection, topics))
    except NoAuthorizer as error:
        return [Check(name="write-block", ok=True, message=sentence_of(error))]
    except Refused as error:
        return [Check(name="write-block", ok=False, message=sentence_of(error))]
    return [found.check(sides.new)]


def remove_block(sides: Sides, state: SwitchState, still_mine: StillMine, *, patience_s: float) -> WriteBlock:
    """Delete the ACLs that deny WRITE alone on one topic of the switch. Return them, and those that stay.

    Raises NoAuthorizer if the cluster has no ACLs.
    """

    async def work() -> WriteBlock:
        found = await _block(sides, connection, (row["topic"] for row in state.rows(Step.STOP)))
        if found.own:
            still_mine()
        for error in (await delete_acls(connection.target, found.own)).values():
            raise error
        return found

    with TargetConnection.of(sides.via, patience_s=patience_s) as connection:
        return connection.run(work)


async def _block(sides: Sides, connection: TargetConnection, topics: Iterable[str]) -> WriteBlock:
    names = written_names(sides.via, topics, sides.clusters)
    return write_block(await described_acls(connection.target), names)


async def _recorded(sides: Sides, connection: TargetConnection) -> set[str]:
    """Return the topics that runs of the flow have seen, by its ledger."""
    view, lane = await connection.view_if_any(), sides.via.lane
    lasts = (*last_receipts(view, lane).values(), *last_units(view, lane).values())
    return {one.source.topic for one in lasts} | {place.topic for place in recorded_partitions(view, lane, None)}
