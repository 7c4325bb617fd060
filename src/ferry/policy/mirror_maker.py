"""MirrorMaker 2's two replication policies.

Sources: `DefaultReplicationPolicy` and `IdentityReplicationPolicy` of Kafka 4.3.0 (`org.apache.kafka.connect.mirror`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ferry.policy.names import DEFAULT_SEPARATOR, HEARTBEATS, is_internal_name


# Without slots: a user's class that derives from one of these may have attributes of its own.
@dataclass(frozen=True, kw_only=True)
class DefaultReplicationPolicy:
    """Target topics have their source's alias in their names: `orders` of `primary` becomes `primary.orders`."""

    separator: str = DEFAULT_SEPARATOR
    internal_separator_enabled: bool = True
    """Whether MirrorMaker 2's internal topics use `separator` too.

    Property `replication.policy.internal.topic.separator.enabled`.
    """

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        alias, separator, _ = topic.partition(self.separator)
        # Java splits the name and drops trailing empty parts: `orders.` has no source there, and `.orders` has "".
        return alias if separator and topic[len(alias) :].replace(self.separator, "") else None

    def upstream_topic(self, topic: str) -> str | None:
        alias = self.topic_source(topic)
        return None if alias is None else topic[len(alias) + len(self.separator) :]

    def original_topic(self, topic: str) -> str:
        upstream = self.upstream_topic(topic)
        return topic if upstream is None or upstream == topic else self.original_topic(upstream)

    def is_internal_topic(self, topic: str) -> bool:
        return is_internal_name(topic, self.internal_separator)

    def shows(self, alias: str) -> bool:
        """Return whether a name shows that it came from `alias`: it does not if the alias contains the separator."""
        return self.separator not in alias

    def heartbeats_topic(self) -> str:
        return HEARTBEATS

    def checkpoints_topic(self, source_alias: str) -> str:
        return self.internal_separator.join((source_alias, "checkpoints", "internal"))

    def offset_syncs_topic(self, other_alias: str) -> str:
        return self.internal_separator.join(("mm2-offset-syncs", other_alias, "internal"))

    @property
    def internal_separator(self) -> str:
        """The separator between the parts of an internal topic's name."""
        return self.separator if self.internal_separator_enabled else DEFAULT_SEPARATOR


@dataclass(frozen=True, kw_only=True)
class IdentityReplicationPolicy:
    """Topics keep their names, except heartbeats. So a name cannot show where a topic came from.

    MirrorMaker 2 regards every topic as coming from the flow's source; that alone never shows a loop between two
    clusters.
    """

    source_alias: str
    separator: str = DEFAULT_SEPARATOR
    internal_separator_enabled: bool = True

    def _default(self) -> DefaultReplicationPolicy:
        return DefaultReplicationPolicy(
            separator=self.separator, internal_separator_enabled=self.internal_separator_enabled
        )

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        if topic.endswith(HEARTBEATS):
            return self._default().format_remote_topic(source_alias, topic)
        return topic

    def topic_source(self, topic: str) -> str | None:
        return self._default().topic_source(topic) if topic.endswith(HEARTBEATS) else self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        return self._default().upstream_topic(topic) if topic.endswith(HEARTBEATS) else topic

    def original_topic(self, topic: str) -> str:
        upstream = self.upstream_topic(topic)
        return topic if upstream is None or upstream == topic else self.original_topic(upstream)

    def is_internal_topic(self, topic: str) -> bool:
        return self._default().is_internal_topic(topic)

    def heartbeats_topic(self) -> str:
        return HEARTBEATS

    def checkpoints_topic(self, source_alias: str) -> str:
        return self._default().checkpoints_topic(source_alias)

    def offset_syncs_topic(self, other_alias: str) -> str:
        return self._default().offset_syncs_topic(other_alias)
