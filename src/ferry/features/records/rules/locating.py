"""Which record breaks a transform off: halves are tried until the first one of a partition is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ferry.model import Range, TopicPartition

Ranges = Mapping[TopicPartition, Range]


def located(ranges: Ranges, fails: Callable[[Ranges], bool], in_time: Callable[[], bool]) -> Ranges | None:
    """The narrowest part of `ranges`, which are known to fail together, that fails alone; None: no part does now.

    With time enough it is one offset, the first of its partition that fails. About as many tries as the number of
    offsets has binary digits, and twice the reading.
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
