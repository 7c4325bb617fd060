"""Partitions that leave an attempt while the others go on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ferry.errors import Retryable
from ferry.kafka.connect import codes
from ferry.model import Piece, Refusal, RefusalKind

_HINDRANCES = {
    codes.NOT_ENOUGH_REPLICAS: RefusalKind.TOO_FEW_REPLICAS,
    codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND: RefusalKind.TOO_FEW_REPLICAS,
    codes.KAFKA_STORAGE_ERROR: RefusalKind.STORAGE,
    codes.UNKNOWN_TOPIC_OR_PARTITION: RefusalKind.TARGET_CHANGED,
    codes.UNKNOWN_TOPIC_ID: RefusalKind.TARGET_CHANGED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """One slice cannot go on past source offset `offset`, or a unit at all; not now, when it is `passing`."""

    piece: Piece
    refusal: Refusal
    offset: int
    passing: bool = False


class Dropped(Exception):
    """The chunk is abandoned and repeated without what lies behind the drops."""

    def __init__(self, drops: Sequence[Drop]) -> None:
        super().__init__(_sentence(drops))
        self.drops = tuple(drops)


class Hindered(Retryable):
    """Some partitions cannot go on now: the chunk is repeated, and without them when that does not help."""

    def __init__(self, drops: Sequence[Drop]) -> None:
        super().__init__(_sentence(drops))
        self.drops = tuple(drops)


def drop(piece: Piece, kind: RefusalKind, offset: int, message: str, *, passing: bool = False) -> Drop:
    """A drop at source offset `offset`, with what the report will say."""
    source = piece.source
    refusal = Refusal(topic=source.topic, partition=source.partition, kind=kind, message=message)
    return Drop(piece=piece, refusal=refusal, offset=offset, passing=passing)


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


def verdict(drops: Iterable[Drop | None]) -> Dropped | Hindered:
    """What to raise for these drops: Dropped as long as some are final, Hindered when all may pass."""
    found = [entry for entry in drops if entry is not None]
    final = [entry for entry in found if not entry.passing]
    return Dropped(final) if final else Hindered(found)


def _sentence(drops: Sequence[Drop]) -> str:
    return "; ".join(drop.refusal.message for drop in drops)
