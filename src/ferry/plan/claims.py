"""Claims of target topics: of two lanes or flows that claim a topic at the same time, one sees the other's claim."""

from __future__ import annotations

from collections.abc import Collection

from ferry.lane.open_lane import OpenLane
from ferry.ledger.codec import claim_record, released_claim, share_record
from ferry.ledger.ledger import claims
from ferry.ledger.other_flows import without_owned_elsewhere
from ferry.model import LaneKind, Plan, lane_kind
from ferry.plan.others.other_flows import read_other_flows
from ferry.plan.rules.facts import Facts, LaneFacts
from ferry.plan.rules.flow_names import names_tell_flows_apart
from ferry.plan.rules.planning import without_foreign
from ferry.protocol.driver import Driver


async def claim(lane: OpenLane, driver: Driver, facts: Facts, plan: Plan) -> Plan:
    """Claim the target topics of a plan, and return the plan without those that another lane claimed first.

    The driver reads the ledger up to its own claims, so it has every claim that another lane wrote before them.
    """
    flow = lane.flow
    merged = {flow.copy_of(name) for name in facts.source.topics if flow.topics.merge.matches(name)}
    # A lane that appends to topics of the live lane makes no claim: they stay claimed by the live lane.
    names = [] if lane_kind(lane.name) is LaneKind.APPEND else _unclaimed(plan, facts.lane)
    own = {name for name, owner in facts.lane.claims.items() if owner == lane.name} | set(names)
    records = [
        *(claim_record(name, flow.flow, lane.name) for name in names),
        *(share_record(name, flow.flow) for name in sorted((merged & own) - facts.lane.shared)),
    ]
    if not names:
        driver.keep(records)
        return plan
    await driver.commit(records)
    lane.cache.learn(driver.view, driver.read_ms)
    plan = without_foreign(plan, claims(driver.view))
    return await _without_owned_elsewhere(lane, driver, plan, names, merged)


async def _without_owned_elsewhere(
    lane: OpenLane, driver: Driver, plan: Plan, names: Collection[str], merged: Collection[str]
) -> Plan:
    """Return the plan without topics that another flow claimed meanwhile, and take back the new claims on those.

    Each flow writes its claim before it reads the other ledgers: of two flows at the same time, one sees the
    other's claim.
    """
    if names_tell_flows_apart(lane.flow):
        return plan
    neighbours = await read_other_flows(lane.flow, lane.target, lane.ledgers, names)
    kept = without_owned_elsewhere(plan, merged, neighbours)
    lost = {target for _, target in plan.copies} - {target for _, target in kept.copies}
    if lost:
        await driver.commit(released_claim(name, lane.name) for name in sorted(lost))
    return kept


def _unclaimed(plan: Plan, lane: LaneFacts) -> list[str]:
    """Return the target topics of a plan that no lane owns yet."""
    return sorted({target for _, target in plan.copies} - set(lane.claims))
