"""Read what a lane has never copied on purpose, from its ledger."""

from __future__ import annotations

from ferry.config.flow.flow import FlowConfig
from ferry.features.switch.acts.partition_state import takes
from ferry.lane.connections import FlowConnections
from ferry.ledger.ledger import UNREAD
from ferry.model.evidence import PassedOver
from ferry.plan.rules.passed_over import passed_over


async def look_at_passed(flow: FlowConfig, connections: FlowConnections) -> tuple[PassedOver, ...]:
    """Return what the flow's lane has passed over, of the topics that a switch covers; nothing without a ledger.

    Topic ids are those of the source, as far as it was asked before.
    """
    view = await connections.view() if await connections.has_ledger() else UNREAD
    ids = {name: info.id_text for name, info in connections.source.topics.items()} if connections.has_source else {}
    return tuple(one for one in passed_over(view, flow.lane, ids) if takes(flow, one.source.topic))
