"""A flow in a lane other than the live one: other topics on the target, and nothing but copying."""

from __future__ import annotations

from dataclasses import replace

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.guards import Guards
from ferry.config.flow.parts import Periodic, Verification
from ferry.config.flow.start import StartEarliest
from ferry.config.text.filters import PatternList
from ferry.model import lane_kind, scratch_topic
from ferry.policy import LanePolicy

_NEVER = Periodic(enabled=False, interval_s=None)


def lane_flow(flow: FlowConfig, lane: str | None) -> FlowConfig:
    """Return the flow for a session in `lane`: `in_lane` for a backfill or a drill, otherwise the flow itself."""
    return flow if lane is None or lane_kind(lane) is None else in_lane(flow, lane)


def in_lane(flow: FlowConfig, lane: str) -> FlowConfig:
    """Return the flow in `lane`: a backfill or a drill has scratch topics, and nothing that belongs to live alone.

    No guard is softened, no topic deleted, and no ACL, group or topic of MirrorMaker 2 changed. Heartbeats are not
    copied, because they are not history. Each scratch topic has one writer, also where live merges. Its runs do not
    verify themselves. Budgets, resources and clients stay those of the flow.

    A lane that appends to the live topics has live's guard of foreign writers, because live and the lane are foreign
    writers to each other. Another live lane (`ferry.lane`) is the flow itself.
    """
    kind = lane_kind(lane)
    if kind is None or lane == flow.lane:
        return replace(flow, lane=lane)
    own = kind.has_scratch_topics
    topics, letters = flow.topics, flow.records.dead_letters
    return replace(
        flow,
        lane=lane,
        topics=replace(
            topics,
            policy=LanePolicy(base=topics.policy, lane=lane) if own else topics.policy,
            selection=replace(topics.selection, heartbeats=False, others=()),
            back=None,
            merge=PatternList(items=()),
            guards=Guards() if own else Guards(foreign_writer=topics.guards.foreign_writer),
            sync_topic_deletes=False,
            sync_topic_configs=False,
        ),
        acls=replace(flow.acls, sync_topic_acls=_NEVER),
        groups=replace(flow.groups, sync_group_offsets=_NEVER),
        mirror=replace(
            flow.mirror,
            emit_checkpoints=_NEVER,
            emit_heartbeats=_NEVER,
            heartbeats_at_source=_NEVER,
            emit_offset_syncs=False,
        ),
        copy=replace(flow.copy, start=StartEarliest()),
        records=replace(flow.records, dead_letters=replace(letters, topic=scratch_topic(letters.topic, lane))),
        ledger=replace(flow.ledger, prunes=False),
        verification=Verification(),
    )
