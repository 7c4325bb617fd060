"""Messages that kafka-python does not know, as Kafka's own schema files define them (KIP-848)."""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage


class ConsumerGroupDescribeRequest(ApiMessage, load_json="ferry.kafka.groups.messages"):  # type: ignore[misc,call-arg]  # no types
    """Describes consumer groups of the protocol of KIP-848."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json="ferry.kafka.groups.messages"):  # type: ignore[misc,call-arg]  # no types
    """The answer to a ConsumerGroupDescribeRequest."""


__all__ = ["ConsumerGroupDescribeRequest", "ConsumerGroupDescribeResponse"]
