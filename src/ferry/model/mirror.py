"""What MirrorMaker 2 keeps in its internal topics, as values (`org.apache.kafka.connect.mirror` of Kafka 4.3.0)."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.model.flow import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSync:
    """The record at offset `upstream` of a source partition is at offset `downstream` of its copy.

    `source` has the name at the source.
    """

    source: TopicPartition
    upstream: int
    downstream: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCheckpoint:
    """A consumer group at `upstream` of a source partition continues at `downstream` of its copy `target`."""

    group: str
    target: TopicPartition
    upstream: int
    downstream: int
    metadata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The flow between two aliases was running at `at_ms`."""

    source_alias: str
    target_alias: str
    at_ms: int
