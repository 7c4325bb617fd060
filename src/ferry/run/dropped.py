"""Partitions that leave an attempt while the others go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferry.model import Refusal, Slice


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """One slice cannot go on past source offset `offset`."""

    piece: Slice
    refusal: Refusal
    offset: int


class Dropped(Exception):
    """The chunk is abandoned and repeated without what lies behind the drops."""

    def __init__(self, drops: Sequence[Drop]) -> None:
        super().__init__("; ".join(drop.refusal.message for drop in drops))
        self.drops = tuple(drops)


def dropped(piece: Slice, refusal: Refusal, offset: int) -> Dropped:
    """Dropped for one partition."""
    return Dropped([Drop(piece=piece, refusal=refusal, offset=offset)])
