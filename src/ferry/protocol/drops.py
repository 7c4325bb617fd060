"""Partitions that leave an attempt while the others go on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ferry.errors import Retryable
from ferry.messages.refusals import refused
from ferry.model import Refusal, RefusalKind, Slice
from ferry.model.sentence import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """One slice cannot go on past source offset `offset`, or a unit at all; not now, when it is `passing`."""

    piece: Slice
    refusal: Refusal
    offset: int
    passing: bool = False


class Dropped(Exception):
    """The chunk is abandoned and repeated without what lies behind the drops."""

    def __init__(self, drops: Sequence[Drop]) -> None:
        super().__init__(_sentence(drops))
        self.drops = tuple(drops)


class Blocked(Retryable):
    """Some partitions cannot go on now: the chunk is repeated, and without them when that does not help."""

    def __init__(self, drops: Sequence[Drop]) -> None:
        super().__init__(_sentence(drops))
        self.drops = tuple(drops)


def drop(
    code: str, piece: Slice, offset: int, *, kind: RefusalKind | None = None, passing: bool = False, **facts: Fact
) -> Drop:
    """A drop at source offset `offset`, with what the report will say (`ferry.messages.refusals.refused`)."""
    refusal = refused(code, piece.source.topic, piece.source.partition, kind=kind, **facts)
    return Drop(piece=piece, refusal=refusal, offset=offset, passing=passing)


def verdict(drops: Iterable[Drop | None]) -> Dropped | Blocked:
    """What to raise for these drops: Dropped as long as some are final, Hindered when all may pass."""
    found = [entry for entry in drops if entry is not None]
    final = [entry for entry in found if not entry.passing]
    return Dropped(final) if final else Blocked(found)


def _sentence(drops: Sequence[Drop]) -> str:
    return "; ".join(drop.refusal.message for drop in drops)
