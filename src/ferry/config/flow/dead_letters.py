"""Where a flow's dead letters go: records on which a transform failed, with `poison = skip` (KIP-298)."""

from __future__ import annotations

from dataclasses import dataclass

NAME = "errors.deadletterqueue.topic.name"
FACTOR = "errors.deadletterqueue.topic.replication.factor"
CONTEXT = "errors.deadletterqueue.context.headers.enable"
TOLERANCE = "errors.tolerance"
"""Kafka Connect's keys (`SinkConnectorConfig`, `ConnectorConfig`)."""

PARTITIONS = 1
"""Partitions of a topic that Ferry creates, as with Connect (`DeadLetterQueueReporter`).

If the topic has more partitions, letters go to all of them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """The topic on the target, and its replicas when Ferry creates it (None: those of other topics).

    `context`: letters have headers with their origin and the reason.
    """

    topic: str
    replication_factor: int | None = None
    context: bool = True


def usual_topic(source: str) -> str:
    """Return the topic's default name: an internal one, which no flow copies."""
    return f"ferry-dead-letters.{source}.internal"
