"""Which offsets of each partition are read, and which task reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ferry.config.flow.start import Start, StartEarliest, StartLatest, StartOffsets, StartTime
from ferry.errors import BadInput, Refused
from ferry.ledger.units import read_ranges
from ferry.model import Range, Slice, TopicPartition

MOST_PIECES = 500
"""Most partitions that one task reads at the same time."""


class Edges(NamedTuple):
    """What can be read of a partition: offsets `[start, end)`; `end` is the last stable offset."""

    start: int
    end: int


class ReadRange(NamedTuple):
    """Offsets `[start, end)` of one partition, for one task."""

    place: TopicPartition
    start: int
    end: int


def settled(
    edges: Mapping[TopicPartition, Edges],
    begin: Start,
    end: Start,
    *,
    first_at: Mapping[TopicPartition, int],
    end_at: Mapping[TopicPartition, int],
) -> dict[TopicPartition, Range]:
    """Return the range of each partition, also the empty ones.

    `first_at` belongs to `begin` and `end_at` to `end`, if these are times. Both are, by partition, the offset of the
    first record at or after the time; -1 or absent: there is none. Raises BadInput for an offset of a partition
    that does not exist, or a range that ends before it begins. Raises Refused for an offset that is not in the log.
    """
    for bound, option in ((begin, "from"), (end, "to")):
        if isinstance(bound, StartOffsets):
            _check_named(bound, option, edges)
    found: dict[TopicPartition, Range] = {}
    for place, log in sorted(edges.items()):
        start = _at(begin, place, log, first_at.get(place, -1), default=log.start)
        stop = _at(end, place, log, end_at.get(place, -1), default=log.end)
        if start > stop and isinstance(begin, StartOffsets) and isinstance(end, StartOffsets):
            raise BadInput(f"the range of {place} begins at offset {start} and ends before {stop}: exchange the two")
        found[place] = start, max(start, stop)
    return found


def _at(bound: Start, place: TopicPartition, log: Edges, timed: int, *, default: int) -> int:
    match bound:
        case StartEarliest():
            return log.start
        case StartLatest():
            return log.end
        case StartTime():
            # The log may have been cut since the broker returned the offset of a time.
            return log.end if timed < 0 else min(max(timed, log.start), log.end)
        case StartOffsets():
            return bound.offsets.get(place, default)


def _check_named(bound: StartOffsets, option: str, edges: Mapping[TopicPartition, Edges]) -> None:
    for place, offset in sorted(bound.offsets.items()):
        log = edges.get(place)
        if log is None:
            raise BadInput(f"{option}: {place} is none of the partitions that are read; correct it, or add its topic")
        if offset < log.start:
            raise Refused(
                f"{option}: offset {offset} of {place} is gone, its log begins at {log.start}: write that, or earliest"
            )
        if offset > log.end:
            raise Refused(
                f"{option}: offset {offset} of {place} cannot be read yet, committed records end before {log.end}: "
                "write that, or latest"
            )


def ranges_of(pieces: Sequence[Slice]) -> dict[TopicPartition, Range]:
    """Return the ranges that the pieces read."""
    return read_ranges(pieces)


def distributed(ranges: Mapping[TopicPartition, Range], most: int) -> list[tuple[ReadRange, ...]]:
    """Divide the ranges into tasks of at most `most` offsets each: long ranges are cut, short ones share a task.

    No task has two ranges of one partition. The ranges of a partition are in the order of its offsets.
    """
    tasks: list[tuple[ReadRange, ...]] = []
    shared: list[ReadRange] = []
    room = most
    for place, (start, end) in sorted(ranges.items()):
        at = start
        while end - at > most:
            tasks.append((ReadRange(place, at, at + most),))
            at += most
        size = end - at
        if not size:
            continue
        if size > room or len(shared) == MOST_PIECES:
            tasks.append(tuple(shared))
            shared, room = [], most
        shared.append(ReadRange(place, at, end))
        room -= size
    if shared:
        tasks.append(tuple(shared))
    return tasks
