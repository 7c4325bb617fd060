"""Replication policies: a topic's name at the source and its name at the target, after MirrorMaker 2.

Sources: `org.apache.kafka.connect.mirror.ReplicationPolicy`, `DefaultReplicationPolicy`, `IdentityReplicationPolicy`
and `MirrorSourceConnector.isCycle` of Kafka 4.3.0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

HEARTBEATS = "heartbeats"
"""MirrorMaker 2's heartbeat topic, before any renaming."""

DEFAULT_SEPARATOR = "."

_FERRY_LEDGER = re.compile(r"ferry-ledger.*\.internal")


class ReplicationPolicy(Protocol):
    """How topics are named on the other side. Implementations are pure: the same names in, the same names out."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The target's name of the source's `topic`."""
        ...

    def topic_source(self, topic: str) -> str | None:
        """The alias of the cluster `topic` was copied from, one hop back; None for a topic that was born here."""
        ...

    def upstream_topic(self, topic: str) -> str | None:
        """The name `topic` has one hop back; None when it was born here."""
        ...

    def original_topic(self, topic: str) -> str:
        """The name `topic` was born with, all hops back."""
        ...

    def is_internal_topic(self, topic: str) -> bool:
        """Whether `topic` serves Kafka or MirrorMaker 2 itself and is never copied."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultReplicationPolicy:
    """Target topics carry their source's alias: `orders` of `primary` becomes `primary.orders`."""

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
        separator = self.separator if self.internal_separator_enabled else DEFAULT_SEPARATOR
        return is_internal_name(topic, separator)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityReplicationPolicy:
    """Topics keep their names, but for heartbeats. A name therefore cannot show where a topic came from.

    MirrorMaker 2 takes every topic to come from the flow's source; that alone never shows a loop between two clusters.
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


def is_internal_name(topic: str, separator: str) -> bool:
    """Kafka's own topics, and MirrorMaker 2's: `mm2…internal` and `….checkpoints.internal`, with `separator`."""
    if topic.startswith(("__", ".")):
        return True
    suffix = f"{separator}internal"
    return (topic.startswith("mm2") and topic.endswith(suffix)) or topic.endswith(f"{separator}checkpoints{suffix}")


def is_ferry_internal(topic: str) -> bool:
    """Ferry's ledgers, which no filter and no policy may copy: each belongs to one target cluster."""
    return _FERRY_LEDGER.fullmatch(topic) is not None


def is_heartbeats_topic(policy: ReplicationPolicy, topic: str) -> bool:
    """Whether `topic` is a heartbeat topic, copied or not."""
    return policy.original_topic(topic) == HEARTBEATS


def would_loop(policy: ReplicationPolicy, topic: str, target_alias: str) -> bool:
    """Whether `topic` came through `target_alias` at any hop, so that copying it there would send it round again."""
    origin = policy.topic_source(topic)
    if origin is None:
        return False
    if origin == target_alias:
        return True
    upstream = policy.upstream_topic(topic)
    return upstream is not None and upstream != topic and would_loop(policy, upstream, target_alias)
