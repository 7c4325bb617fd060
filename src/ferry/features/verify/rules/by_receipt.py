"""Which chunks of a run are read again, to be compared with their receipts."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from ferry.features.verify.rules.compare_ranges import CompareRange
from ferry.features.verify.rules.repartitioned import DealtCopy
from ferry.model import Receipt

AFFORDABLE_BYTES = 256 << 20
"""The bytes of the target that are read for a run, about a quarter of a second of CPU; one chunk at least is read."""


def affordable(
    receipts: Iterable[Receipt],
    found: Sequence[CompareRange],
    most: int = AFFORDABLE_BYTES,
    *,
    repartitioned: Sequence[DealtCopy] = (),
) -> list[Receipt]:
    """Return the receipts whose chunks are read: all, or a choice by the run's generation, so that each has its turn.

    Chunks without records are not among them, nor compacted ones, nor those that cannot be compared whole.
    """
    chunks = {(copy.target, chunk.start) for copy in repartitioned for chunk in copy.chunks}
    whole = [
        one
        for one in receipts
        if one.segments
        and ((one.target, one.target_start) in chunks if one.reads is not None else _is_whole(one, found))
    ]
    random.Random(whole[0].generation if whole else 0).shuffle(whole)
    chosen: list[Receipt] = []
    size = 0
    for one in whole:
        if not chosen or size + one.bytes <= most:
            chosen.append(one)
            size += one.bytes
    return sorted(chosen, key=lambda one: (one.target, one.start))


def _is_whole(receipt: Receipt, found: Sequence[CompareRange]) -> bool:
    return any(
        one.source == receipt.source
        and not one.compacted
        and one.source_range[0] <= receipt.segments[0].source_start
        and receipt.segments[-1].source_end <= one.source_range[1]
        for one in found
    )
