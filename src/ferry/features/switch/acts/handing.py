"""Pass the offsets that groups left on the old cluster to the flow back: its runs continue from there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import Retryable
from ferry.features.groups.acts.translated import deals
from ferry.features.groups.rules.codec import group_record, held_groups
from ferry.features.switch.rules.handing import handed, left_offsets
from ferry.kafka.groups.offsets import fetch_offsets
from ferry.lane.connections import FlowConnections
from ferry.ledger.codec import decode_key

TRIES = 5
"""How many times runs of the flow back may write the same groups meanwhile."""


async def hand_over(flow: FlowConfig, both: FlowConnections, rows: Iterable[dict[str, Any]], switch: str) -> int:
    """Write to the ledger of the flow back which offsets it must treat as its own; return how many groups that changes.

    `rows` are those of the step `groups`. The flow may be running: if one of its runs writes a group meanwhile, the
    groups are read again. Raises Retryable if that happens TRIES times.
    """
    rows = list(rows)
    left = left_offsets(rows)
    if not left:
        return 0
    asked = {group: list(places) for group, places in left.items()}
    for _ in range(TRIES):
        view = await both.view_if_any()
        is_repartitioned = deals(flow, view)

        def copy_of(topic: str, is_repartitioned: Any = is_repartitioned) -> str | None:
            if not flow.topics.selection.takes(topic) or flow.topics.merge.matches(topic) or is_repartitioned(topic):
                return None
            return flow.copy_of(topic)

        read = await fetch_offsets(both.target, asked, stable=True, operation="READ")
        found = handed(rows, copy_of, read.found, held_groups(view, flow.lane, left.__contains__), wall_ms())
        if not found:
            return 0
        records = [group_record(flow.lane, group, held, run=switch, at_ms=wall_ms()) for group, held in found.items()]
        own = await both.ledger.append_each(records)
        since = await both.ledger.read_untransacted(max(0, view.end), own[-1] + 1)
        others = (decode_key(one.key) for one in since if one.offset not in own and one.key.startswith(b'["group",'))
        if not any(key[1] == flow.lane and key[2] in found for key in others):
            return len(found)
    raise Retryable(f"runs of {flow.flow} write the same groups all the time: try again")
