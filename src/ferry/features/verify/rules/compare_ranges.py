"""Which offsets of two clusters are compared, which cannot be, and why."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from ferry.features.verify.rules.differences import Places
from ferry.ledger.copied import Copied, common, united, without
from ferry.ledger.producer_codec import Continued
from ferry.model import NotCompared, NotComparedKind, Range, Segment, TopicPartition
from ferry.words import agreeing, several

SAMPLE_RECORDS = 10_000
"""The most records of a piece of a sample: longer segments are cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to compare of a partition: source offsets `[start, end)`, or those of `run`; None is all that is copied.

    `sample` n: one of n segments, chosen by `seed`.
    """

    start: int | None = None
    end: int | None = None
    run: tuple[Range, ...] | None = None
    sample: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Where the logs of a partition begin and end on both sides; `stable` is the target's last stable offset."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int
    stable: int
    same_until: int | None = None
    """With identical offsets, where the source's log ends for the flow. None: the target has offsets of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRange:
    """Source and target offsets that are compared with each other, and the segments between them.

    Records of the target from `covered_until` on are in no receipt that was read. With identical offsets they are
    compared without one, and there are none after `covered_until`. `void` are target offsets of copies that do not
    count any more (`Copied.void`).
    """

    source: TopicPartition
    target: TopicPartition
    source_range: Range
    target_range: Range
    segments: tuple[Segment, ...]
    covered_until: int
    void: tuple[Range, ...] = ()
    shared: bool = False
    identical: bool = False
    """Whether each record has to be at its source offset."""
    compacted: bool = False
    transform: str = ""
    """Digest of the transform that made the target's records; empty: they are the source's."""
    by_content: tuple[bool, bool] | None = None
    """Without a map: whether the other side should have all of the source's records, and of the target's."""
    to_end: bool = False
    """Without a map: whether the target should have records up to the end of the source's range."""

    @property
    def records(self) -> int:
        """Count the records that the map has there."""
        return sum(segment.count for segment in self.segments)


def unreadable(span: CompareRange, why: str) -> NotCompared:
    """Make the entry for a range that was asked for, and that could not be read on one side."""
    return unreadable_range(span.source, span.source_range, why)


def unreadable_range(source: TopicPartition, offsets: Range, why: str) -> NotCompared:
    """Make the entry for some offsets that were asked for, and that could not be read on one side."""
    start, end = offsets
    return NotCompared(
        source=source,
        start=start,
        end=end,
        why=NotComparedKind.UNREADABLE,
        message=f"offsets {start} to {end - 1} of {source} were not compared: {why}",
        asked=True,
    )


def at_source_offsets(copied: Copied) -> Copied:
    """Return what a lane with identical offsets has copied, as it has to be, whatever the segments of receipts say."""
    return replace(copied, segments=tuple(replace(one, target_start=one.source_start) for one in copied.segments))


def after_clients(copied: Copied, continued: Continued) -> Copied:
    """Return a copy with identical offsets that the lane continued after records of clients.

    Both sides have the same records before that, whether the lane, the flow back or clients wrote them. The source's
    topic may have been made again from them, and nothing be copied from it yet.
    """
    at = continued.at
    if at >= copied.target_next:
        copied = replace(copied, source_topic_id=continued.source_topic_id)
    later = segments_within(copied.segments, at, max(at, copied.target_next))
    return replace(
        copied,
        ranges=united([(0, at), *copied.ranges]),
        segments=(Segment(source_start=0, target_start=0, count=at), *later),
        void=without(copied.void, [(0, at)]),
        target_next=max(at, copied.target_next),
    )


def unreceived(source: TopicPartition, target: TopicPartition, first: int) -> Copied:
    """Return a copy with identical offsets that has no receipt yet, and may have records from offset `first` on."""
    return Copied(source=source, target=target, ranges=(), segments=(), void=(), target_next=first, shared=False)


def without_records(copied: Copied, ends: Ends) -> NotCompared:
    """Make the entry for a copy that has no receipt yet, if nothing of it is compared."""
    source, start, end = copied.source, copied.target_next, max(copied.target_next, ends.stable)
    message = f"nothing of {source} is copied yet: run the flow"
    if end > start:
        message = f"offsets {start} to {end - 1} of {source} have no receipt yet: leave out --to and --one-in"
    return NotCompared(
        source=source, start=start, end=end, why=NotComparedKind.NOT_COPIED, message=message, asked=False
    )


def spans(copied: Copied, asked: Asked, ends: Ends, *, compacted: bool) -> tuple[list[CompareRange], list[NotCompared]]:
    """Return what can be compared of a partition, ascending, and what cannot."""
    places = Places(copied.segments)
    left, out = _wanted(copied, asked)
    for why, cut, message, always in _losses(copied, ends, places):
        lost = common(left, [cut])
        left = without(left, [cut])
        asked_for = always or asked.start is not None
        out += [
            NotCompared(source=copied.source, start=a, end=b, why=why, message=message, asked=asked_for)
            for a, b in lost
        ]  # fmt: skip
    bounded = asked.end is not None or asked.run is not None or copied.shared
    same = ends.same_until is not None
    behind = copied.target_next if bounded or same else max(copied.target_next, ends.stable)
    found = [
        _span(copied, places, a, b, behind, ends, compacted=compacted, transform=digest)
        for a, b, digest in _by_rule(left, copied.transformed)
    ]
    if asked.sample is not None:
        found = list(_sampled(found, asked.sample, asked.seed))
    elif ends.same_until is not None and not bounded and (not copied.ranges or (asked.start or 0) < copied.target_next):
        after, gone = _after_receipts(copied, ends, ends.same_until, asked.start or 0, compacted=compacted)
        found = [replace(one, covered_until=max(one.covered_until, ends.stable)) for one in [*found, *after]]
        out += gone
    return found, out


def _after_receipts(
    copied: Copied, ends: Ends, same_until: int, asked: int, *, compacted: bool
) -> tuple[list[CompareRange], list[NotCompared]]:
    """Return what has identical offsets and no receipt yet, and what of it the source has deleted.

    A run writes it before its receipts, and may be active, or may have been killed in between. `asked`: the first
    source offset that is wanted.
    """
    source, begin, end = copied.source, max(copied.target_next, ends.target_start, asked), ends.stable
    start = max(begin, min(ends.source_start, end))
    lost = []
    if start > begin:
        message = f"offsets {begin} to {start - 1} of {source} have no receipt, and the source has deleted them"
        why = NotComparedKind.SOURCE_DELETED
        lost.append(NotCompared(source=source, start=begin, end=start, why=why, message=message, asked=True))
    if start >= end:
        return [], lost
    until = max(start, min(end, same_until))
    span = CompareRange(
        source=source,
        target=copied.target,
        source_range=(start, until),
        target_range=(start, end),
        segments=(Segment(source_start=start, target_start=start, count=until - start),) if until > start else (),
        covered_until=end,
        void=common(copied.void, [(start, end)]),
        compacted=compacted,
    )
    return [span], lost


def _by_rule(left: Sequence[Range], transformed: Sequence[tuple[Range, str]]) -> list[tuple[int, int, str]]:
    """Cut the ranges where another rule made the records: each has the digest of its transform, if it has one."""
    found = [(a, b, digest) for part, digest in transformed for a, b in common(left, [part])]
    found += [(a, b, "") for a, b in without(left, [part for part, _ in transformed])]
    return sorted(found)


def _wanted(copied: Copied, asked: Asked) -> tuple[tuple[Range, ...], list[NotCompared]]:
    """Return the copied ranges that are asked for, and what is asked for and not copied."""
    if not copied.ranges:
        return (), []
    first, last = copied.ranges[0][0], copied.ranges[-1][1]
    start = first if asked.start is None else asked.start
    wanted = [(start, max(start, last) if asked.end is None else asked.end)]
    if asked.run is not None:
        wanted = list(common(wanted, asked.run))
    out = []
    if asked.start is not None and asked.start >= last and asked.end is None:
        message = f"offset {start} of {copied.source} is not copied yet (up to {last} are): run the flow"
        why = NotComparedKind.NOT_COPIED
        out.append(NotCompared(source=copied.source, start=start, end=start, why=why, message=message, asked=True))
    for a, b in without(wanted, copied.ranges):
        inside = first < b and a < last
        if inside:
            message = f"offsets {a} to {b - 1} of {copied.source} were skipped: `ferry ledger` says by whom and why"
        elif a >= last:
            message = f"offsets {a} to {b - 1} of {copied.source} are not copied yet (up to {last} are): run the flow"
        else:
            message = f"offsets {a} to {b - 1} of {copied.source} are before the first copied one, {first}: --from it"
        why = NotComparedKind.SKIPPED if inside else NotComparedKind.NOT_COPIED
        out.append(NotCompared(source=copied.source, start=a, end=b, why=why, message=message, asked=not inside))
    return common(wanted, copied.ranges), out


def _losses(copied: Copied, ends: Ends, places: Places) -> Iterator[tuple[NotComparedKind, Range, str, bool]]:
    """Return source offsets that cannot be compared, why, and whether that matters even if they were not asked for."""
    source, target = copied.source, copied.target
    end = copied.ranges[-1][1] if copied.ranges else 0
    deleted = (
        f"the log of {source} at the source begins at offset {ends.source_start}: what was before is deleted there"
    )
    yield NotComparedKind.SOURCE_DELETED, (0, ends.source_start), deleted, False
    replaced = (
        f"the log of {source} at the source ends at offset {ends.source_end}, before what was copied: it was cut, or "
        "the topic created again; `ferry plan` shows what to do"
    )
    yield NotComparedKind.SOURCE_REPLACED, (ends.source_end, max(end, ends.source_end)), replaced, True
    if copied.segments and ends.target_start > copied.segments[0].target_start:
        begins = f"the log of {target} at the target begins at offset {ends.target_start}"
        lost = 0, places.next_back(ends.target_start, end)
        yield NotComparedKind.TARGET_DELETED, lost, f"{begins}: what was before is deleted there", False
    if ends.stable < min(copied.target_next, ends.target_end):
        unstable = (
            f"a transaction is open at offset {ends.stable} of {target}, so no consumer reads further: verify again "
            "when it has ended (kafka-transactions.sh find-hanging lists those that do not)"
        )
        yield NotComparedKind.NOT_STABLE, (places.next_back(ends.stable, end), end), unstable, True


def no_receipt_yet(every: Iterable[tuple[Copied, Ends]]) -> list[str]:
    """Return a note if copies with identical offsets have records that no receipt covers yet."""
    found = [
        (count, f"{copied.target} from offset {copied.target_next}")
        for copied, ends in every
        if ends.same_until is not None and (count := _unreceived(copied, ends.stable)) > 0
    ]
    if not found:
        return []
    count, where = sum(one for one, _ in found), several([place for _, place in found])
    records = agreeing(count, "record has", "records have")
    note = (
        f"{records} no receipt yet ({where}), as while a run copies, or after one was killed: they are compared with "
        "the source's records at the same offsets, and the next run writes their receipts if they are equal"
    )
    return [note]


def _unreceived(copied: Copied, end: int) -> int:
    """Count the offsets after the receipts, without those of clients."""
    return sum(b - a for a, b in without([(copied.target_next, max(end, copied.target_next))], copied.void))


def _span(
    copied: Copied,
    places: Places,
    start: int,
    end: int,
    behind: int,
    ends: Ends,
    *,
    compacted: bool,
    transform: str,
) -> CompareRange:
    if not copied.segments:  # nothing of it is on the target: what is there is from before the flow
        begins = behind = ends.stable
    else:
        begins = max(places.next_of(start, copied.target_next), ends.target_start)
    last = end >= copied.ranges[-1][1]
    until = behind if last else places.next_of(end, copied.target_next)
    return CompareRange(
        source=copied.source,
        target=copied.target,
        source_range=(start, end),
        target_range=(begins, max(begins, min(until, ends.stable))),
        segments=segments_within(copied.segments, start, end),
        covered_until=copied.target_next,
        void=common(copied.void, [(begins, until)]),
        shared=copied.shared,
        compacted=compacted,
        transform=transform,
    )


def segments_within(segments: Sequence[Segment], start: int, end: int) -> tuple[Segment, ...]:
    """Return the parts of segments that are in source offsets `[start, end)`."""
    return tuple(_within(segments, start, end))


def _within(segments: Sequence[Segment], start: int, end: int) -> Iterator[Segment]:
    for segment in segments:
        a, b = max(segment.source_start, start), min(segment.source_end, end)
        if a < b:
            shift = segment.target_start - segment.source_start
            yield Segment(source_start=a, target_start=a + shift, count=b - a)


def _sampled(found: Sequence[CompareRange], share: int, seed: int) -> Iterator[CompareRange]:
    """Return one of `share` pieces, at least one of each partition that has any; the same seed chooses the same."""
    pieces = [piece for span in found for piece in _pieces(span)]
    if pieces:
        name = pieces[0].source
        first = random.Random(f"{seed}/{name.topic}/{name.partition}").randrange(min(share, len(pieces)))
        yield from pieces[first::share]


def _pieces(span: CompareRange) -> Iterator[CompareRange]:
    if span.transform:
        yield from _grouped(span)
        return
    for segment in span.segments:
        for at in range(0, segment.count, SAMPLE_RECORDS):
            count = min(SAMPLE_RECORDS, segment.count - at)
            source, target = segment.source_start + at, segment.target_start + at
            # What is after the target's end is read only at the source, and reported as missing.
            until = max(target, min(target + count, span.target_range[1]))
            yield CompareRange(
                source=span.source,
                target=span.target,
                source_range=(source, source + count),
                target_range=(target, until),
                segments=(Segment(source_start=source, target_start=target, count=count),),
                covered_until=span.covered_until,
                void=common(span.void, [(target, target + count)]),
                shared=span.shared,
                compacted=span.compacted,
            )


def _grouped(span: CompareRange) -> Iterator[CompareRange]:
    """Group pieces of about so many records with all that is between them: a filter makes many small segments."""
    some: list[Segment] = []
    starts = span.source_range[0], span.target_range[0]
    for segment in _shortened(span.segments):
        if some and sum(one.count for one in some) + segment.count > SAMPLE_RECORDS:
            ends = segment.source_start, max(starts[1], min(segment.target_start, span.target_range[1]))
            yield _piece(span, some, starts, ends)
            some, starts = [], ends
        some.append(segment)
    yield _piece(span, some, starts, (span.source_range[1], span.target_range[1]))


def _shortened(segments: Sequence[Segment]) -> Iterator[Segment]:
    for one in segments:
        for at in range(0, one.count, SAMPLE_RECORDS):
            count = min(SAMPLE_RECORDS, one.count - at)
            yield Segment(source_start=one.source_start + at, target_start=one.target_start + at, count=count)


def _piece(span: CompareRange, some: Sequence[Segment], starts: Range, ends: Range) -> CompareRange:
    return replace(
        span,
        source_range=(starts[0], ends[0]),
        target_range=(starts[1], max(starts[1], ends[1])),
        segments=tuple(some),
        void=common(span.void, [(starts[1], ends[1])]),
    )


class Sized(Protocol):
    """Anything that has about so many records to be compared."""

    @property
    def records(self) -> int:
        """Count the records."""


SizedT = TypeVar("SizedT", bound=Sized)


def distributed(found: Sequence[SizedT], tasks: int) -> list[list[SizedT]]:
    """Distribute ranges to at most so many tasks, each with about as many records.

    The largest comes first, and goes to the task that has least.
    """
    shares: list[list[SizedT]] = [[] for _ in range(max(1, min(tasks, len(found))))]
    loads = [0] * len(shares)
    for span in sorted(found, key=lambda one: -one.records):
        least = loads.index(min(loads))
        shares[least].append(span)
        loads[least] += span.records + 1
    return [share for share in shares if share]


def is_void(offset: int, void: Sequence[Range]) -> bool:
    """Report whether a target offset is of a copy that does not count any more."""
    return any(start <= offset < end for start, end in void)
