"""How much of transformed topics one Spark job compares with the target, and what of it cannot be read. Pure.

What a job shuffles is on disks, as in a copy (`ferry.plan.rules.portions`). Parts that are cut are compared separately:
each part has the source's records and the target's that belong together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ferry.features.verify.rules.compare_ranges import CompareRange, segments_within, unreadable_range
from ferry.features.verify.rules.differences import Places
from ferry.features.verify.rules.repartitioned import Chunk, DealtCopy, not_read
from ferry.ledger.copied import common, united
from ferry.model import NotCompared, Range, TopicPartition
from ferry.plan.rules.portions import RECORD_BYTES
from ferry.plan.rules.progress import UNKNOWN_RECORD_BYTES
from ferry.plan.rules.shares import fair_shares

OffsetBytes = Mapping[TopicPartition, int]
"""About how many bytes an offset of a source partition has, as far as that is known."""

Unread = Mapping[TopicPartition, tuple[int, str]]
"""From which offset on a source partition cannot be read, and why, as a sentence."""


def cut(span: CompareRange, at: int) -> tuple[CompareRange, CompareRange]:
    """Cut a range in two at a source offset inside of it."""
    (start, end), (begin, stop) = span.source_range, span.target_range
    middle = min(max(begin, Places(span.segments).next_of(at, stop)), stop)
    return _part(span, (start, at), (begin, middle)), _part(span, (at, end), (middle, stop))


def _part(span: CompareRange, source_range: Range, target_range: Range) -> CompareRange:
    return replace(
        span,
        source_range=source_range,
        target_range=target_range,
        segments=segments_within(span.segments, *source_range),
        void=common(span.void, [target_range]),
    )


def cost_of(spans: Sequence[CompareRange], sizes: OffsetBytes) -> int:
    """Return about how many bytes of ranges are shuffled."""
    return sum(_offsets(one) * _cost(sizes, one.source) for one in spans)


def portion_of(
    spans: Sequence[CompareRange], sizes: OffsetBytes, most: int
) -> tuple[list[CompareRange], list[CompareRange]]:
    """Return the next portion, about `most` bytes, fairly shared by the ranges; and what is left."""
    costs = [_cost(sizes, one.source) for one in spans]
    needs = {number: _offsets(one) * costs[number] for number, one in enumerate(spans)}
    shares = fair_shares(needs, most)
    now, left = [], []
    for number, one in enumerate(spans):
        count = -(-shares[number] // costs[number])
        if count >= _offsets(one):
            now.append(one)
        elif not count:
            left.append(one)
        else:
            first, rest = cut(one, one.source_range[0] + count)
            now.append(first)
            left.append(rest)
    return now, left


def cost_of_dealt(copies: Sequence[DealtCopy], sizes: OffsetBytes) -> int:
    """Return about how many bytes of repartitioned copies are shuffled."""
    return sum(one.records * _cost_of_topic(sizes, one.topic) for one in copies)


def portion_of_dealt(
    copies: Sequence[DealtCopy], sizes: OffsetBytes, most: int
) -> tuple[list[DealtCopy], list[DealtCopy]]:
    """Return the next portion, about `most` bytes of whole chunks, and what is left.

    Chunks that end first at the source come first, because they read the same records.
    """
    order = sorted(
        (sum(chunk.reached), number, at) for number, copy in enumerate(copies) for at, chunk in enumerate(copy.chunks)
    )
    taken = [0] * len(copies)
    room = most
    for _, number, at in order:
        copy = copies[number]
        cost = copy.chunks[at].records * _cost_of_topic(sizes, copy.topic)
        if cost > room and any(taken):
            break
        taken[number] = at + 1
        room -= cost
    now = [replace(copy, chunks=copy.chunks[: taken[number]]) for number, copy in enumerate(copies) if taken[number]]
    left = [replace(copy, chunks=rest) for number, copy in enumerate(copies) if (rest := copy.chunks[taken[number] :])]
    return now, left


def joined(spans: Sequence[CompareRange]) -> list[CompareRange]:
    """Join ranges that were cut, as far as a sentence needs it: only the offsets of the source."""
    found: list[CompareRange] = []
    for one in sorted(spans, key=lambda one: (one.source, one.source_range)):
        last = found[-1] if found else None
        if last is not None and last.source == one.source and last.source_range[1] == one.source_range[0]:
            found[-1] = replace(last, source_range=(last.source_range[0], one.source_range[1]))
        else:
            found.append(one)
    return found


def without_unread(
    groups: Sequence[Sequence[CompareRange]], unread: Unread
) -> tuple[list[list[CompareRange]], list[NotCompared]]:
    """Return ranges as far as their source can be read, group by group, and sentences about what cannot be read."""
    kept: list[list[CompareRange]] = []
    lost: dict[TopicPartition, list[Range]] = {}
    for group in groups:
        kept.append([])
        for one in group:
            start, end = one.source_range
            offset = min(end, unread.get(one.source, (end, ""))[0])
            if offset < end:
                lost.setdefault(one.source, []).append((max(start, offset), end))
            if offset > start:
                kept[-1].append(cut(one, offset)[0] if offset < end else one)
    notes = [unreadable_range(place, part, unread[place][1]) for place in sorted(lost) for part in united(lost[place])]
    return kept, notes


def without_unread_dealt(
    groups: Sequence[Sequence[DealtCopy]], unread: Unread
) -> tuple[list[list[DealtCopy]], list[NotCompared]]:
    """Return copies without the chunks that have records of what cannot be read, and sentences about these chunks."""
    kept: list[list[DealtCopy]] = []
    lost: dict[tuple[TopicPartition, TopicPartition], list[Chunk]] = {}
    for group in groups:
        kept.append([])
        for copy in group:
            chunks = []
            for chunk in copy.chunks:
                place = _unread_place(copy.topic, chunk, unread)
                if place is None:
                    chunks.append(chunk)
                else:
                    lost.setdefault((place, copy.target), []).append(chunk)
            if chunks:
                kept[-1].append(replace(copy, chunks=tuple(chunks)))
    return kept, [not_read(place, target, mine, *unread[place]) for (place, target), mine in sorted(lost.items())]


def _unread_place(topic: str, chunk: Chunk, unread: Unread) -> TopicPartition | None:
    """Return the first source partition of a chunk that cannot be read to its end."""
    for number, (_, end) in sorted(chunk.ranges.items()):
        place = TopicPartition(topic, number)
        if place in unread and unread[place][0] < end:
            return place
    return None


def _offsets(span: CompareRange) -> int:
    return span.source_range[1] - span.source_range[0]


def _cost(sizes: OffsetBytes, place: TopicPartition) -> int:
    return sizes.get(place, UNKNOWN_RECORD_BYTES) + RECORD_BYTES


def _cost_of_topic(sizes: OffsetBytes, topic: str) -> int:
    known = [size for place, size in sizes.items() if place.topic == topic]
    return (sum(known) // len(known) if known else UNKNOWN_RECORD_BYTES) + RECORD_BYTES
