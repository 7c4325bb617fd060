"""The names of a lane beside the live one: the flow's own policy, and the lane behind it."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.model import scratch_topic
from ferry.policy.names import ReplicationPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePolicy:
    """`orders` of `primary` becomes `primary.orders.backfill.backfill-january`; all else is as `base` says."""

    base: ReplicationPolicy
    lane: str

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return scratch_topic(self.base.format_remote_topic(source_alias, topic), self.lane)

    def topic_source(self, topic: str) -> str | None:
        return self.base.topic_source(topic)

    def upstream_topic(self, topic: str) -> str | None:
        return self.base.upstream_topic(topic)

    def original_topic(self, topic: str) -> str:
        return self.base.original_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        return self.base.is_internal_topic(topic)

    def heartbeats_topic(self) -> str:
        return self.base.heartbeats_topic()

    def checkpoints_topic(self, source_alias: str) -> str:
        return self.base.checkpoints_topic(source_alias)

    def offset_syncs_topic(self, other_alias: str) -> str:
        return self.base.offset_syncs_topic(other_alias)
