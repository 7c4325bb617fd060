"""Claims of target topics: of two lanes or flows that claim a topic at the same time, one sees the other's claim."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ferry.config.flow.flow import FlowConfig
from ferry.kafka.connect.cluster import Cluster
from ferry.lane.ledger_cache import LedgerCaches
from ferry.ledger.codec import accounted_records, claim_record, released_claim, share_record
from ferry.ledger.ledger import claims
from ferry.ledger.other_flows import without_owned_elsewhere
from ferry.model import LaneKind, Plan, lane_kind
from ferry.plan.others.other_flows import names_tell_flows_apart, read_neighbours
from ferry.plan.rules.facts import Facts, LaneFacts
from ferry.plan.rules.planning import without_foreign
from ferry.protocol.driver import Driver


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Claims for one lane of a flow, over open connections. Lives on their event loop."""

    flow: FlowConfig
    lane: str
    target: Cluster
    ledgers: LedgerCaches

    async def claim(self, driver: Driver, facts: Facts, plan: Plan) -> Plan:
        """Claim the target topics of a plan, and return the plan without those that another lane claimed first.

        The driver reads the ledger up to its own claims, so it has every claim that another lane wrote before them.
        """
        merged = {self.flow.copy_of(name) for name in facts.source.topics if self.flow.topics.merge.matches(name)}
        # A lane that appends to topics of the live lane makes no claim: they stay claimed by the live lane.
        names = [] if lane_kind(self.lane) is LaneKind.APPEND else _unclaimed(plan, facts.lane)
        own = {name for name, lane in facts.lane.claims.items() if lane == self.lane} | set(names)
        records = [
            *(claim_record(name, self.flow.flow, self.lane) for name in names),
            *(share_record(name, self.flow.flow) for name in sorted((merged & own) - facts.lane.shared)),
            *accounted_records(
                self.lane, facts.others.accounted, {name: topic.topic_id for name, topic in facts.target.topics.items()}
            ),
        ]
        if not names:
            driver.keep(records)
            return plan
        await driver.commit(records)
        self.ledgers.of(self.target, self.flow.flow.source).learn(driver.view, driver.read_ms)
        plan = without_foreign(plan, claims(driver.view))
        return await self._without_owned_elsewhere(driver, plan, names, merged)

    async def _without_owned_elsewhere(
        self, driver: Driver, plan: Plan, names: Collection[str], merged: Collection[str]
    ) -> Plan:
        """Return the plan without topics that another flow claimed meanwhile, and take back the new claims on those.

        Each flow writes its claim before it reads the other ledgers: of two flows at the same time, one sees the
        other's claim.
        """
        if names_tell_flows_apart(self.flow):
            return plan
        neighbours = await read_neighbours(self.flow, self.target, self.ledgers, names)
        kept = without_owned_elsewhere(plan, merged, neighbours)
        lost = {target for _, target in plan.copies} - {target for _, target in kept.copies}
        if lost:
            await driver.commit(released_claim(name, self.lane) for name in sorted(lost))
        return kept


def _unclaimed(plan: Plan, lane: LaneFacts) -> list[str]:
    """The target topics of a plan that no lane owns yet."""
    return sorted({target for _, target in plan.copies} - set(lane.claims))
