"""Partitions that leave an attempt while the others continue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ferry.errors import Retryable
from ferry.messages.refusals import refused
from ferry.model import Refusal, RefusalKind, Slice
from ferry.model.sentence import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """One slice that cannot be copied past source offset `offset`, or a unit that cannot be copied at all.

    `passing`: the reason may pass, so that a later try may succeed.
    """

    piece: Slice
    refusal: Refusal
    offset: int
    passing: bool = False


class Dropped(Exception):
    """Raised to abandon the chunk. It is repeated without the records from the drops' offsets on."""

    def __init__(self, drops: Sequence[Drop]) -> None:
        super().__init__(_sentence(drops))
        self.drops = tuple(drops)


class Blocked(Retryable):
    """Some partitions cannot continue now: the chunk is repeated, and without them when that does not help."""

    def __init__(self, drops: Sequence[Drop]) -> None:
        super().__init__(_sentence(drops))
        self.drops = tuple(drops)


def drop(
    code: str, piece: Slice, offset: int, *, kind: RefusalKind | None = None, passing: bool = False, **facts: Fact
) -> Drop:
    """Make a drop at source offset `offset`, with its refusal for the report (`ferry.messages.refusals.refused`)."""
    refusal = refused(code, piece.source.topic, piece.source.partition, kind=kind, **facts)
    return Drop(piece=piece, refusal=refusal, offset=offset, passing=passing)


def verdict(drops: Iterable[Drop | None]) -> Dropped | Blocked:
    """Return the error to raise for these drops: Dropped when some are final, Blocked when all may pass."""
    found = [entry for entry in drops if entry is not None]
    final = [entry for entry in found if not entry.passing]
    return Dropped(final) if final else Blocked(found)


def _sentence(drops: Sequence[Drop]) -> str:
    return "; ".join(drop.refusal.message for drop in drops)
