"""Translates offsets that another replicator copied, by the few pairs of offsets that are known, never past a record.

The rule is that of MirrorMaker 2 (`OffsetSyncStore.translateDownstream`). An offset leads to the last pair at or before
it, and at most one record further. Records between two pairs may not have been copied. Before the first pair an offset
leads to the beginning of the copy, where MirrorMaker 2 gives no answer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from ferry.features.groups.rules.offset_map import Approximate
from ferry.model import Adoption, Gap


def approximate(
    adoptions: Sequence[Adoption], offset: int, *, backward: bool = False, gaps: Iterable[Gap] = ()
) -> Approximate | None:
    """Return where a reader of `offset` continues on the other side, if the lane adopted it; None when it did not.

    What a later gap voids does not count, as with receipts.
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
    """Report whether the lane did not go back to `offset` or before it after the adoption."""
    return not any(
        gap.void_from <= offset
        for gap in gaps
        if gap.source == adoption.source and gap.void_from is not None and adoption.generation < gap.generation
    )
