"""Partitions that leave an attempt while the others go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferry.errors import Retryable
from ferry.model import Refusal, RefusalKind, Slice


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """One slice cannot go on past source offset `offset`."""

    piece: Slice
    refusal: Refusal
    offset: int


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


def drop(piece: Slice, kind: RefusalKind, offset: int, message: str) -> Drop:
    """A drop at source offset `offset`, with what the report will say."""
    source = piece.source
    refusal = Refusal(topic=source.topic, partition=source.partition, kind=kind, message=message)
    return Drop(piece=piece, refusal=refusal, offset=offset)


def _sentence(drops: Sequence[Drop]) -> str:
    return "; ".join(drop.refusal.message for drop in drops)
