"""Which groups and topics of a flow are translated, from its file."""

from __future__ import annotations

from ferry.config.flow.flow import FlowConfig
from ferry.decide.groups.which import GroupRules


def group_rules(flow: FlowConfig, *, only: frozenset[str] | None = None, force: bool = False) -> GroupRules:
    """What the flow's file says of groups, narrowed to `only`."""
    return GroupRules(
        flow=flow.flow,
        takes_group=flow.groups.takes,
        takes_topic=flow.selection.takes,
        merges=flow.merge.matches,
        only=only,
        force=force,
    )
