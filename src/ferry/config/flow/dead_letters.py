"""Where a flow's dead letters go: records that a transform cannot be applied to, with `poison = skip` (KIP-298)."""

from __future__ import annotations

from dataclasses import dataclass

NAME = "errors.deadletterqueue.topic.name"
FACTOR = "errors.deadletterqueue.topic.replication.factor"
CONTEXT = "errors.deadletterqueue.context.headers.enable"
TOLERANCE = "errors.tolerance"
"""Kafka Connect's keys (`SinkConnectorConfig`, `ConnectorConfig`)."""

PARTITIONS = 1
"""Of a topic that Ferry makes, as Connect's (`DeadLetterQueueReporter`); one that has more gets letters to all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """The topic on the target, its replicas when Ferry makes it (None: as of other topics), and whether letters tell
    in headers where they come from and why."""

    topic: str
    replication_factor: int | None = None
    context: bool = True


def usual_topic(source: str) -> str:
    """What the topic is called unless the file says: an internal name, which no flow copies on."""
    return f"ferry-dead-letters.{source}.internal"
