"""Examine a source of which a flow's filter takes no topic at all."""

from __future__ import annotations

from dataclasses import replace

from ferry.config.flow.flow import FlowConfig
from ferry.errors import Refused
from ferry.kafka.admin.acls import NoAuthorizer, described_acls
from ferry.kafka.connect.cluster import Cluster
from ferry.plan.rules.empty_filter import idle_reason, is_bare, unfound
from ferry.plan.rules.facts import Unfound


async def found_nothing(flow: FlowConfig, source: Cluster, target: Cluster) -> Unfound | None:
    """Return what the filter was compared with, and why it may rightly take nothing; None if it takes a topic.

    Both clusters have their metadata already. Only a source that lists no topics of its own is asked for more: without
    an authorizer it hides none, so it is empty.
    """
    found = unfound(flow.topics.selection, source.topics)
    if found is None:
        return None
    idle = idle_reason(flow.topics.selection, flow.topics.back, source.topics, target.topics)
    if not idle and is_bare(flow.topics.selection, source.topics) and not await _may_hide(source):
        idle = f"cluster {source.alias} has no topics yet"
    return replace(found, idle=idle)


async def _may_hide(cluster: Cluster) -> bool:
    """Return whether the cluster may hide topics: it has an authorizer, or does not show whether it has one."""
    try:
        await described_acls(cluster)
    except NoAuthorizer:
        return False
    except Refused:
        return True
    return True
