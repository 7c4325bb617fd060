"""All facts that a plan is decided from: both clusters, the lane, and what others wrote to the target."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ferry.kafka.produce.open_transactions import named_transactions
from ferry.lane.open_lane import OpenLane
from ferry.ledger.ledger import LedgerView
from ferry.ledger.runs import slots_to_fence
from ferry.model import TopicPartition
from ferry.model.observed import OpenTransaction
from ferry.plan.gather import Positions, gather_facts, with_deleted
from ferry.plan.gather_targets import gather_targets, with_resources
from ferry.plan.others.foreign_records import with_foreign_writers
from ferry.plan.others.other_flows import with_other_flows
from ferry.plan.rules.facts import Facts
from ferry.plan.transforms import lost_rules
from ferry.plan.truncation import with_truncations
from ferry.protocol.names import transactional_id


async def gather_all(lane: OpenLane, view: LedgerView, positions: Positions = Positions.SETTLED) -> Facts:
    """Gather the facts that a plan is decided from."""
    facts = await gather_facts(lane.flow, lane.name, lane.source, lane.target, view, positions=positions)
    facts = await with_truncations(facts, lane.name, lane.source, lane.target, view, lane.cache)
    facts = replace(
        facts,
        source=await with_deleted(lane.flow, facts, lane.source),
        target=await with_resources(lane.flow, facts.target, lane.target),
        lane=replace(facts.lane, open_on_ledger=await _open_on_ledger(lane, view)),
    )
    return await _with_others(lane, facts, view)


async def gather_again(lane: OpenLane, facts: Facts, view: LedgerView, failed: Collection[str]) -> Facts:
    """Return `facts` with the target's topics as they are after a run has changed some, and nothing else gathered.

    `failed`: source topics whose copies could not be made.
    """
    sources = {name: topic for name, topic in facts.source.topics.items() if name not in failed}
    names = facts.source.topics.keys() | facts.source.absent
    now = await gather_targets(lane.flow, lane.target, names, facts.lane.eras.values())
    facts = replace(
        facts,
        source=replace(facts.source, topics=sources),
        target=replace(facts.target, topics=now.topics, hidden=now.hidden),
    )
    return await _with_others(lane, facts, view)


def with_lost_rules(lane: OpenLane, facts: Facts, digests: Mapping[str, str]) -> Facts:
    """Return `facts` with the rules of transforms that the lane has copied by, and the file has no longer."""
    if not facts.lane.eras:
        return facts
    return replace(facts, lane=replace(facts.lane, lost_rules=lost_rules(lane.flow, facts.lane.eras, digests)))


async def _open_on_ledger(lane: OpenLane, view: LedgerView) -> dict[TopicPartition, OpenTransaction]:
    """Return the oldest transaction that is open on the ledger, if the view has records of one."""
    if not view.open:
        return {}
    place = lane.ledger.place
    begun = (await named_transactions(lane.target, [place])).get(place)
    if begun is None:  # the leader of the ledger's partition does not report more about it
        return {place: OpenTransaction.unreported(min(one.offset for one in view.open))}
    return {place: begun[0]} if begun else {}


async def _with_others(lane: OpenLane, facts: Facts, view: LedgerView) -> Facts:
    """Return `facts` with what others wrote to the target, up to the ends in the facts or later ones."""
    slots = range(max(lane.flow.slots, slots_to_fence(view, lane.name)))
    writers = frozenset(transactional_id(lane.flow.flow, lane.name, slot) for slot in slots)
    facts = await with_foreign_writers(lane.flow, lane.name, facts, lane.target, view, writers)
    return await with_other_flows(lane.flow, lane.name, facts, lane.source, lane.target, lane.ledgers, view)
