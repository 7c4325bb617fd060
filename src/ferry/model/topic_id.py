"""A topic's id as text, so that a message can be held against what Kafka's own tools print."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID

_DASHED = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def topic_id_text(topic_id: UUID | None) -> str:
    """URL-safe base64 without padding, as Kafka's `Uuid.toString`; empty for a broker without topic ids (KIP-516)."""
    if topic_id is None or topic_id.int == 0:
        return ""
    return urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def parse_topic_id(text: str) -> str:
    """The same of what the ledger holds: records of early versions have the id with dashes, as hexadecimal digits."""
    return topic_id_text(UUID(text)) if _DASHED.fullmatch(text) else text


def topic_id_of(text: str) -> UUID:
    """The id that `topic_id_text` shows; ValueError for text that is none."""
    return UUID(bytes=urlsafe_b64decode(text + "=="))
