"""MirrorMaker 2's internal topics of a flow: their names, which cluster has them, and how often they are replicated."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.config.flow.flow import FlowConfig
from ferry.config.keys.layers import Side


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopicName:
    """A topic that the flow's runs write; `key` is the setting that asks for it."""

    side: Side
    name: str
    replication_factor: int
    key: str


def checkpoints_topic(flow: FlowConfig) -> InternalTopicName | None:
    """Where checkpoints go; None where the file says no."""
    if not _on(flow.emit_checkpoints.enabled, flow.emit_checkpoints.interval_s):
        return None
    return InternalTopicName(
        side="target",
        name=flow.policy.checkpoints_topic(flow.flow.source),
        replication_factor=flow.internal_topics.checkpoints_replication_factor,
        key="emit.checkpoints.enabled",
    )


def offset_syncs_topic(flow: FlowConfig) -> InternalTopicName | None:
    """Where offset syncs go; None where the file says no. It is named after the other cluster."""
    if not flow.emit_offset_syncs:
        return None
    side = flow.internal_topics.offset_syncs_location
    return InternalTopicName(
        side=side,
        name=flow.policy.offset_syncs_topic(flow.flow.target if side == "source" else flow.flow.source),
        replication_factor=flow.internal_topics.offset_syncs_replication_factor,
        key="emit.offset-syncs.enabled",
    )


def heartbeats_topic(flow: FlowConfig) -> InternalTopicName | None:
    """Where the flow's heartbeats go; None where the file says no.

    Also None when a policy gives the copy of the source's heartbeats the same name: a topic has one writer.
    """
    name = flow.policy.heartbeats_topic()
    if not _on(flow.emit_heartbeats.enabled, flow.emit_heartbeats.interval_s) or copied_heartbeats(flow) == name:
        return None
    return InternalTopicName(
        side="target",
        name=name,
        replication_factor=flow.internal_topics.heartbeats_replication_factor,
        key="emit.heartbeats.enabled",
    )


def source_heartbeats_topic(flow: FlowConfig) -> InternalTopicName | None:
    """Where the heartbeats of the flow back go, at the source; None unless the file asks for them."""
    asked = flow.heartbeats_at_source
    if not _on(asked.enabled, asked.interval_s):
        return None
    return InternalTopicName(
        side="source",
        name=flow.policy.heartbeats_topic(),
        replication_factor=flow.internal_topics.heartbeats_replication_factor,
        key=f"{flow.flow.target}->{flow.flow.source}.emit.heartbeats.enabled",
    )


def copied_heartbeats(flow: FlowConfig) -> str | None:
    """The copy of the source's heartbeats, whose name tells MirrorClient of the source; None where none is made."""
    name = flow.policy.heartbeats_topic()
    return flow.policy.format_remote_topic(flow.flow.source, name) if flow.selection.takes(name) else None


def internal_topics(flow: FlowConfig) -> list[InternalTopicName]:
    """All that the flow's runs write."""
    found = (checkpoints_topic(flow), offset_syncs_topic(flow), heartbeats_topic(flow), source_heartbeats_topic(flow))
    return [topic for topic in found if topic is not None]


def _on(enabled: bool, interval_s: int | None) -> bool:
    return enabled and interval_s is not None
