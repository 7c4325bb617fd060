"""A transform that breaks off in a task: at which record, and why, as one sentence. Nothing is written to find it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ferry.decide.records.locating import Ranges, located
from ferry.decide.records.units import read_ranges
from ferry.model import Piece, Range, Slice, TopicPartition, Unit
from ferry.spark.records.failures import SPARKS, cause_of

LOCATE_SECONDS = 120.0
"""How long a record is looked for before all of what is left is named."""


def ranges_of(pieces: Sequence[Piece]) -> dict[TopicPartition, Range]:
    """What the pieces want to have read."""
    found = read_ranges(piece for piece in pieces if isinstance(piece, Unit))
    return found | {piece.source: (piece.start, piece.end) for piece in pieces if isinstance(piece, Slice)}


def fault_of(transform: str, pieces: Sequence[Piece], attempt: Callable[[Ranges], None]) -> str | None:
    """Why the transform cannot be carried out on these pieces; None where it can, or not always fails.

    `attempt` carries it out on some ranges of them, and writes nothing.
    """
    last: Exception | None = None
    until = time.monotonic() + LOCATE_SECONDS

    def fails(ranges: Ranges) -> bool:
        nonlocal last
        try:
            attempt(ranges)
        except SPARKS as error:
            last = error
            return True
        return False

    ranges = ranges_of(pieces)
    if not fails(ranges):
        return None
    found = located(ranges, fails, lambda: time.monotonic() < until)
    if found is None or last is None:
        return None
    return (
        f"ferry.transform.{transform} breaks off at {_where(found)}: {cause_of(last)}; correct it, or let it leave "
        "such records out: in SQL by WHERE, or by a function that answers null, as try_cast"
    )


def _where(ranges: Ranges) -> str:
    """The record, or what it is among."""
    if len(ranges) > 1:
        topics = sorted({place.topic for place in ranges})
        return f"a record of {', '.join(topics)} ({len(ranges)} partitions)"
    ((place, (start, end)),) = ranges.items()
    one = end - start == 1
    return f"the record at offset {start} of {place}" if one else f"a record of {place} at offset {start} or behind"
