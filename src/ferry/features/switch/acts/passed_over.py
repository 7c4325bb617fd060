"""Read what a lane's target lacks that is no lag, from its ledger: what was passed over, dead letters, and more."""

from __future__ import annotations

from ferry.config.flow.flow import FlowConfig
from ferry.features.switch.acts.partition_state import takes
from ferry.lane.connections import FlowConnections
from ferry.ledger.ledger import UNREAD
from ferry.model.evidence import PassedOver
from ferry.plan.rules.passed_over import passed_over
from ferry.plan.transforms import without_letters


async def look_at_passed(flow: FlowConfig, connections: FlowConnections) -> tuple[PassedOver, ...]:
    """Return what the target of the flow's lane lacks, of the topics that a switch covers; nothing without a ledger.

    Topic ids are those of the source, as far as it was asked before.
    """
    view = await connections.view() if await connections.has_ledger() else UNREAD
    ids = {name: info.id_text for name, info in connections.source.topics.items()} if connections.has_source else {}
    found = passed_over(view, flow.lane, ids, without_letters(flow))
    return tuple(one for one in found if takes(flow, one.source.topic))
