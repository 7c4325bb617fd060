"""Topic names: what Kafka allows, what is internal, and what a replication policy must answer about the others.

Sources: `org.apache.kafka.connect.mirror.ReplicationPolicy` and `MirrorSourceConnector.isCycle` of Kafka 4.3.0,
`org.apache.kafka.common.internals.Topic` for legal names.
"""

from __future__ import annotations

import re
from typing import Protocol

HEARTBEATS = "heartbeats"
"""MirrorMaker 2's heartbeat topic, before any renaming."""

DEFAULT_SEPARATOR = "."

MAX_TOPIC_NAME = 249
"""Kafka's limit on the length of a topic name."""

_LEGAL = re.compile(r"[A-Za-z0-9._-]+")
_FERRY_LEDGER = re.compile(r"ferry-(ledger|delivery).*\.internal")


class ReplicationPolicy(Protocol):
    """How topics are named on the other side. Implementations are pure: the same names in, the same names out.

    A class of your own may derive from this one. It then has `original_topic` and `is_internal_topic`, as in Java.
    docs/policies.md has an example; `ferry.testing.policy` checks a class.
    """

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the target's name of the source's `topic`."""
        ...

    def topic_source(self, topic: str) -> str | None:
        """Return the alias of the cluster that `topic` was copied from, one hop back.

        None for a topic that is not a copy.
        """
        ...

    def upstream_topic(self, topic: str) -> str | None:
        """Return the name of `topic` one hop back; None for a topic that is not a copy."""
        ...

    def original_topic(self, topic: str) -> str:
        """Return the first name of `topic`, all hops back."""
        upstream = self.upstream_topic(topic)
        return topic if upstream is None or upstream == topic else self.original_topic(upstream)

    def is_internal_topic(self, topic: str) -> bool:
        """Return whether `topic` serves Kafka or MirrorMaker 2 itself and is never copied."""
        return is_internal_name(topic, DEFAULT_SEPARATOR)

    def heartbeats_topic(self) -> str:
        """Return the topic of heartbeats on the cluster that writes them."""
        return HEARTBEATS

    def checkpoints_topic(self, source_alias: str) -> str:
        """Return the topic of checkpoints on the target of the flow from `source_alias`."""
        return f"{source_alias}.checkpoints.internal"

    def offset_syncs_topic(self, other_alias: str) -> str:
        """Return the topic of offset syncs on the one cluster of a flow; `other_alias` is the other one."""
        return f"mm2-offset-syncs.{other_alias}.internal"


def illegal_name(name: str) -> str | None:
    """Return why Kafka does not accept `name` for a topic, as half a sentence; None when it does."""
    if not name:
        return "is empty"
    if name in (".", ".."):
        return "is a folder's name"
    if len(name) > MAX_TOPIC_NAME:
        return f"has {len(name)} characters, but Kafka allows {MAX_TOPIC_NAME}"
    if not _LEGAL.fullmatch(name):
        return "has other characters than letters, digits, dot, underscore and hyphen"
    return None


def is_internal_name(topic: str, separator: str) -> bool:
    """Return whether a topic is Kafka's own or MirrorMaker 2's: `mm2…internal` and `….checkpoints.internal`.

    `separator` is the one before `checkpoints` and `internal`.
    """
    if topic.startswith(("__", ".")):
        return True
    suffix = f"{separator}internal"
    return (topic.startswith("mm2") and topic.endswith(suffix)) or topic.endswith(f"{separator}checkpoints{suffix}")


def is_ferry_internal(topic: str) -> bool:
    """Return whether a topic is a ledger of Ferry, which no filter and no policy may copy.

    Each ledger belongs to one target cluster.
    """
    return _FERRY_LEDGER.fullmatch(topic) is not None


def is_heartbeats_topic(policy: ReplicationPolicy, topic: str) -> bool:
    """Return whether `topic` is a heartbeat topic, copied or not."""
    return policy.original_topic(topic) == policy.heartbeats_topic()


def would_loop(policy: ReplicationPolicy, topic: str, target_alias: str) -> bool:
    """Return whether `topic` came through `target_alias` at any hop, so that a copy there would be a loop."""
    origin = policy.topic_source(topic)
    if origin is None:
        return False
    if origin == target_alias:
        return True
    upstream = policy.upstream_topic(topic)
    return upstream is not None and upstream != topic and would_loop(policy, upstream, target_alias)
