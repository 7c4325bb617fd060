"""Where a lane began with each source partition, and which offsets of its log are in no receipt and no gap. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from ferry.ledger.copied import Copied, without
from ferry.model import Adoption, Begin, Era, Gap, Range, TopicPartition
from ferry.plan.rules.starts import LaneStarts


def begins(
    every: Iterable[Copied],
    rules: Iterable[Era],
    starts: LaneStarts,
    known: Sequence[Gap],
    adopted: Iterable[Adoption],
    log_starts: Mapping[TopicPartition, int],
    dealt_from: Mapping[TopicPartition, int] = MappingProxyType({}),
) -> tuple[Begin, ...]:
    """Return one entry for each source partition that the lane has receipts or a start of, in order.

    With receipts the lane begins where the first of them does; else where a plan recorded that it will. A repartitioned
    topic begins where its first rule did: `rules` has the rule in force, `dealt_from` the least offset of the receipts
    that are left. A rule begins where the one before it has come to, so all between is in receipts or gaps.
    `log_starts` are those of the logs that are still the same.
    """
    passed: dict[TopicPartition, list[Range]] = {}
    for gap in known:
        passed.setdefault(gap.source, []).append((gap.start, gap.end))
    by_mirror = {one.source for one in adopted}
    held: dict[TopicPartition, tuple[Range, ...]] = {one.source: one.ranges for one in every if one.ranges}
    for place, offset in starts.offsets.items():
        held.setdefault(place, ((offset, offset),))
    for era in rules:
        for number, offset in enumerate(era.begins):
            place = TopicPartition(era.source_topic, number)
            first = min(offset, starts.offsets.get(place, offset), dealt_from.get(place, offset))
            held[place] = ((first, offset),)
    found = []
    for place in sorted(held.keys() | starts.pending.keys()):
        ranges, log_start = held.get(place, ()), log_starts.get(place)
        lacking: tuple[Range, ...] = ()
        if ranges and log_start is not None:
            lacking = without([(log_start, ranges[-1][1])], [*ranges, *passed.get(place, ())])
        found.append(
            Begin(
                source=place,
                offset=ranges[0][0] if ranges else None,
                log_start=log_start,
                unaccounted=lacking,
                adopted=place in by_mirror,
            )
        )
    return tuple(found)
