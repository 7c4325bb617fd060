"""Read what a lane's target lacks that is not lag, from its ledger: what was skipped, dead letters, and more."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.config.flow.flow import FlowConfig
from ferry.features.switch.acts.partition_state import takes
from ferry.lane.connections import FlowConnections
from ferry.ledger.ledger import LedgerView
from ferry.model.evidence import DEAD_LETTERS, PassedOver
from ferry.plan.rules.passed_over import passed_over
from ferry.plan.transforms import without_letters


async def look_at_passed(flow: FlowConfig, connections: FlowConnections) -> tuple[PassedOver, ...]:
    """Return what the target of the flow's lane lacks, of the topics that a switch covers; nothing without a ledger.

    Topic ids are those of the source, as far as it was asked before.
    """
    view = await connections.view_if_any()
    ids = {name: info.id_text for name, info in connections.source.topics.items()} if connections.has_source else {}
    return tuple(one for one in passed_by(flow, view, ids) if takes(flow, one.source.topic))


def passed_by(flow: FlowConfig, view: LedgerView, ids: Mapping[str, str]) -> tuple[PassedOver, ...]:
    """Return what the target of the flow's lane lacks; `ids` are the ids of source topics, as far as they are known.

    Functions of transforms are imported only if the ledger alone does not have the number of dead letters.
    """
    found = passed_over(view, flow.lane, ids)
    if any(one.why == DEAD_LETTERS and one.records is None for one in found):
        found = passed_over(view, flow.lane, ids, without_letters(flow))
    return found
