"""What the target says against a partition alone, as a drop."""

from __future__ import annotations

from collections.abc import Iterable

from ferry.kafka.connect import codes
from ferry.model import Piece, RefusalKind
from ferry.protocol.drops import Drop, drop

_HINDRANCES = {
    codes.NOT_ENOUGH_REPLICAS: RefusalKind.TOO_FEW_REPLICAS,
    codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND: RefusalKind.TOO_FEW_REPLICAS,
    codes.KAFKA_STORAGE_ERROR: RefusalKind.STORAGE,
    codes.UNKNOWN_TOPIC_OR_PARTITION: RefusalKind.TARGET_CHANGED,
    codes.UNKNOWN_TOPIC_ID: RefusalKind.TARGET_CHANGED,
}


def out_of_time(piece: Piece, offset: int, cluster: str, told: Iterable[str | None]) -> Drop:
    """A drop for times that the target does not take (INVALID_TIMESTAMP); the first of its words in `told` is named."""
    words = next((word for word in told if word), "it does not say which")
    return drop(
        piece,
        RefusalKind.INVALID_CONFIG,
        offset,
        f"{piece.target} on cluster {cluster} refuses a timestamp in the batch at source offset {offset} ({words}): "
        "raise message.timestamp.after.max.ms on that topic for times ahead of its brokers' clock, or "
        "message.timestamp.before.max.ms for old ones; if config.properties.exclude names it, take it out there",
    )


def refused(piece: Piece, offset: int, code: int, cluster: str, act: str, grant: str) -> Drop | None:
    """What an error code of the target says against a slice alone; None when it says nothing about it.

    `act` is what was tried on the partition, `grant` the operation that it takes.
    """
    where = f"{piece.target} on cluster {cluster}"
    if code in codes.UNAUTHORIZED:
        return drop(piece, RefusalKind.NOT_AUTHORIZED, offset, f"not allowed to {act} {where}: grant {grant}")
    if code in _HINDRANCES:
        return drop(piece, _HINDRANCES[code], offset, f"{where} answers {codes.advised(code)}", passing=True)
    return None
