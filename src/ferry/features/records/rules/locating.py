"""Finds the record at which a transform breaks off: halves are tried until the first one of a partition is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ferry.model import Range, TopicPartition

Ranges = Mapping[TopicPartition, Range]


def located(ranges: Ranges, fails: Callable[[Ranges], bool], in_time: Callable[[], bool]) -> Ranges | None:
    """Return the narrowest part of `ranges`, which fail together, that fails alone; None: no part fails now.

    With enough time it is one offset, the first of its partition that fails. It takes about as many tries as the number
    of offsets has binary digits, and reads twice as much.
    """
    left, known = {place: ranges[place] for place in sorted(ranges)}, False
    while in_time() and sum(end - start for start, end in left.values()) > 1:
        first, second = _halves(left)
        known = fails(first)
        left = first if known else second
    return left if known or fails(left) else None


def _halves(ranges: dict[TopicPartition, Range]) -> tuple[dict[TopicPartition, Range], dict[TopicPartition, Range]]:
    places = list(ranges)
    if len(places) > 1:
        middle = len(places) // 2
        return {place: ranges[place] for place in places[:middle]}, {place: ranges[place] for place in places[middle:]}
    ((place, (start, end)),) = ranges.items()
    middle = (start + end) // 2
    return {place: (start, middle)}, {place: (middle, end)}
