"""MirrorMaker 2's internal topics of a flow: their names, which cluster has them, and their replication factor."""

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
    """Return the topic of checkpoints; None if the file turns them off."""
    if not flow.emits_checkpoints:
        return None
    return InternalTopicName(
        side="target",
        name=flow.topics.policy.checkpoints_topic(flow.flow.source),
        replication_factor=flow.mirror.internal_topics.checkpoints_replication_factor,
        key="emit.checkpoints.enabled",
    )


def offset_syncs_topic(flow: FlowConfig) -> InternalTopicName | None:
    """Return the topic of offset syncs, which is named after the other cluster; None if the file turns them off."""
    if not flow.mirror.emit_offset_syncs:
        return None
    topics = flow.mirror.internal_topics
    side = topics.offset_syncs_location
    return InternalTopicName(
        side=side,
        name=flow.topics.policy.offset_syncs_topic(flow.flow.target if side == "source" else flow.flow.source),
        replication_factor=topics.offset_syncs_replication_factor,
        key="emit.offset-syncs.enabled",
    )


def heartbeats_topic(flow: FlowConfig) -> InternalTopicName | None:
    """Return the topic of the flow's heartbeats; None if the file turns them off.

    Also None if a policy gives the copy of the source's heartbeats the same name: a topic has one writer.
    """
    name = flow.topics.policy.heartbeats_topic()
    if not flow.mirror.emit_heartbeats.occurs or copied_heartbeats(flow) == name:
        return None
    return InternalTopicName(
        side="target",
        name=name,
        replication_factor=flow.mirror.internal_topics.heartbeats_replication_factor,
        key="emit.heartbeats.enabled",
    )


def source_heartbeats_topic(flow: FlowConfig) -> InternalTopicName | None:
    """Return the topic at the source for heartbeats of the opposite flow; None unless the file asks for them."""
    if not flow.mirror.heartbeats_at_source.occurs:
        return None
    return InternalTopicName(
        side="source",
        name=flow.topics.policy.heartbeats_topic(),
        replication_factor=flow.mirror.internal_topics.heartbeats_replication_factor,
        key=f"{flow.flow.target}->{flow.flow.source}.emit.heartbeats.enabled",
    )


def copied_heartbeats(flow: FlowConfig) -> str | None:
    """Return the name of the copy of the source's heartbeats; None if the flow does not copy them.

    MirrorClient takes the source's alias from this name.
    """
    name = flow.topics.policy.heartbeats_topic()
    return flow.copy_of(name) if flow.topics.selection.takes(name) else None


def internal_topics(flow: FlowConfig) -> list[InternalTopicName]:
    """Return all internal topics that the flow's runs write."""
    found = (checkpoints_topic(flow), offset_syncs_topic(flow), heartbeats_topic(flow), source_heartbeats_topic(flow))
    return [topic for topic in found if topic is not None]
