"""What MirrorMaker 2 keeps in its internal topics, as values (`org.apache.kafka.connect.mirror` of Kafka 4.3.0)."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.model.flow import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSync:
    """The record at offset `upstream` of a source partition lies at offset `downstream` of its copy.

    `source` is named as at the source.
    """

    source: TopicPartition
    upstream: int
    downstream: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCheckpoint:
    """A consumer group that stands at `upstream` of a source partition goes on at `downstream` of its copy `target`."""

    group: str
    target: TopicPartition
    upstream: int
    downstream: int
    metadata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The flow between two aliases was at work at `at_ms`."""

    source_alias: str
    target_alias: str
    at_ms: int
