"""A topic's id as text, so that a message can be compared with the output of Kafka's own tools."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID

_DASHED = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def topic_id_text(topic_id: UUID | None) -> str:
    """Return URL-safe base64 without padding (Kafka's `Uuid.toString`).

    Empty for a broker without topic ids (KIP-516).
    """
    if topic_id is None or topic_id.int == 0:
        return ""
    return urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def parse_topic_id(text: str) -> str:
    """Return the text of a topic id in the ledger.

    Records of early versions have it as hexadecimal digits with dashes.
    """
    return topic_id_text(UUID(text)) if _DASHED.fullmatch(text) else text


def topic_id_of(text: str) -> UUID:
    """Return the id that `topic_id_text` shows. Raises ValueError for other texts."""
    return UUID(bytes=urlsafe_b64decode(text + "=="))
