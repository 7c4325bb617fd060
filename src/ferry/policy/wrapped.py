"""A policy on top of another: it gives copies other names, and all else comes from the other one."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.policy.names import ReplicationPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class WrappedPolicy:
    """All answers are those of `base`.

    Subclasses give copies other names, which do not show where a topic came from.
    """

    base: ReplicationPolicy

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return self.base.format_remote_topic(source_alias, topic)

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


def innermost(policy: ReplicationPolicy) -> ReplicationPolicy:
    """Return the policy of the flow's file, below all policies that give copies other names."""
    while isinstance(policy, WrappedPolicy):
        policy = policy.base
    return policy
