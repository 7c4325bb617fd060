"""Offsets that a predecessor copied: translated by the few pairs that are known of them, never past a record.

The rule is MirrorMaker 2's own (`OffsetSyncStore.translateDownstream`): from the last pair at or before an offset, and
one further at most, for what lies between two pairs may have been left out. Before the first pair it is the beginning
of the copy, where MirrorMaker 2 gives no answer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from ferry.features.groups.rules.offset_map import Approximate
from ferry.model import Adoption, Gap


def approximate(
    adoptions: Sequence[Adoption], offset: int, *, backward: bool = False, gaps: Iterable[Gap] = ()
) -> Approximate | None:
    """Where a reader of `offset` goes on at the other side, if the lane adopted it; None when it did not.

    What a later gap voids does not hold, as with receipts.
    """
    later = tuple(gaps)
    for adoption in adoptions:
        low, high = (adoption.target_start, adoption.target_next) if backward else (adoption.start, adoption.end)
        if low <= offset < high:
            found = _backward(adoption, offset) if backward else _forward(adoption, offset)
            if _holds(adoption, found if backward else offset, later):
                return Approximate(offset=found)
    return None


def _forward(adoption: Adoption, offset: int) -> int:
    at = bisect_right(adoption.pairs, offset, key=lambda pair: pair[0]) - 1
    if at < 0:
        return adoption.target_start
    source, target = adoption.pairs[at]
    return min(target + (offset > source), adoption.target_next)


def _backward(adoption: Adoption, offset: int) -> int:
    at = bisect_right(adoption.pairs, offset, key=lambda pair: pair[1]) - 1
    if at < 0:
        return adoption.start
    source, target = adoption.pairs[at]
    return min(source + (offset > target), adoption.end)


def _holds(adoption: Adoption, offset: int, gaps: Iterable[Gap]) -> bool:
    """Whether the lane did not go back behind the adoption, to `offset` or before."""
    return not any(
        gap.source == adoption.source and 0 <= gap.void_from <= offset and adoption.generation < gap.generation
        for gap in gaps
    )
