"""Replication policies of users: one that works, and some that do not."""

import sys
from collections.abc import Mapping

from ferry.policy import DefaultReplicationPolicy


class Suffixed:
    """`orders` of west becomes `orders_west`, with the separator that the file names."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.properties = properties
        self.alias = properties["source.cluster.alias"]
        self.ending = f"{properties.get('replication.policy.joint', '_')}{self.alias}"

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}{self.ending}"

    def topic_source(self, topic: str) -> str | None:
        return self.alias if topic.endswith(self.ending) else None

    def upstream_topic(self, topic: str) -> str | None:
        return topic.removesuffix(self.ending) if topic.endswith(self.ending) else None

    def original_topic(self, topic: str) -> str:
        return topic.removesuffix(self.ending)

    def is_internal_topic(self, topic: str) -> bool:
        return topic.startswith("__")


class Raises(Suffixed):
    def topic_source(self, topic: str) -> str | None:
        raise RuntimeError("out of order")


class RaisesAtOnce(Suffixed):
    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__({})


class LacksMethods:
    def __init__(self, properties: Mapping[str, str]) -> None:
        self.policy = DefaultReplicationPolicy()

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return self.policy.format_remote_topic(source_alias, topic)


class NamesNoTopic(Suffixed):
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}/{topic}"


class AnswersWrong(Suffixed):
    def is_internal_topic(self, topic: str) -> bool:
        return "no"  # type: ignore[return-value]  # the mistake that is to be found


class Leaves(Suffixed):
    def topic_source(self, topic: str) -> str | None:
        sys.exit(0)


class ShowsAll(Suffixed):
    def topic_source(self, topic: str) -> str | None:
        raise ValueError(str(self.properties))
