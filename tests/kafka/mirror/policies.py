"""Replication policies of a user's own, who names MirrorMaker 2's internal topics himself."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.policy import ReplicationPolicy


class OwnNames(ReplicationPolicy):
    """`orders` of `a` becomes `orders-of-a`, and so do internal topics."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.properties = properties

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}-of-{source_alias}"

    def topic_source(self, topic: str) -> str | None:
        _, mark, alias = topic.rpartition("-of-")
        return alias if mark else None

    def upstream_topic(self, topic: str) -> str | None:
        upstream, mark, _ = topic.rpartition("-of-")
        return upstream if mark else None

    def heartbeats_topic(self) -> str:
        return "beats"

    def checkpoints_topic(self, source_alias: str) -> str:
        return f"checks-of-{source_alias}"

    def offset_syncs_topic(self, other_alias: str) -> str:
        return f"syncs-of-{other_alias}"


class SameNames(ReplicationPolicy):
    """Everything keeps its name, heartbeats too."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.alias = properties["source.cluster.alias"]

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return topic

    def topic_source(self, topic: str) -> str | None:
        return None

    def upstream_topic(self, topic: str) -> str | None:
        return None


class NoName(SameNames):
    """Kafka takes one of its names for none."""

    def checkpoints_topic(self, source_alias: str) -> str:
        return "no spaces"
