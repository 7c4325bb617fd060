"""How much of a run's transformed topics one Spark job copies: a shuffle needs disk space, and commits at its end."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ferry.model import Slice, TopicPartition
from ferry.plan.rules.shares import fair_shares

RECORD_BYTES = 200
"""About how many bytes a record takes in addition to its own while Spark sorts it."""


def portion_of(
    slices: Collection[Slice], at: Mapping[TopicPartition, int], most: int
) -> dict[TopicPartition, tuple[int, int]]:
    """Return by source partition the offsets that come next, for slices that are `at` an offset: about `most` bytes.

    The bytes are shared fairly. They are bytes as stored at the source, and RECORD_BYTES for each offset. Each slice
    gets some, as long as there are no more slices than bytes.
    """
    costs = {piece.source: _cost(piece) for piece in slices}
    needs = {piece.source: (piece.end - at[piece.source]) * costs[piece.source] for piece in slices}
    shares = fair_shares(needs, most)
    found = {}
    for piece in slices:
        place = piece.source
        count = -(-shares[place] // costs[place])
        if count:
            found[place] = (at[place], min(piece.end, at[place] + count))
    return found


def fits_one_portion(slices: Collection[Slice], at: Mapping[TopicPartition, int], most: int) -> bool:
    """Return whether one portion has all that is left."""
    return sum((piece.end - at[piece.source]) * _cost(piece) for piece in slices) <= most


def _cost(piece: Slice) -> int:
    return piece.bytes_estimate // max(1, piece.offsets) + RECORD_BYTES
