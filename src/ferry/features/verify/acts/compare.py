"""Compares ranges of two clusters. It reads both sides of some partitions at a time, in a fixed amount of memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from ferry.config.client_options import ENGINE_CHOOSES, FetchOptions
from ferry.features.verify.rules.compare_ranges import CompareRange, unreadable
from ferry.features.verify.rules.differences import SHOWN, SOURCE, TARGET, Comparison, See
from ferry.features.verify.rules.differences import OneSided as TakeLone
from ferry.model import Difference, DifferenceKind, NotCompared, Range, RecordContent, RecordSample, TopicPartition
from ferry.plan.rules.compaction import MOST_KEYS, Lone, OneSided

TOGETHER = 500
"""Partitions of small ranges that are read at the same time."""

SMALL_RECORDS = 1_000
"""Ranges of so few records are read together: there is room for all of their batches at once."""

MOST_TOLD = 10_000
"""Differences of all partitions that are reported one by one; further ones are counted."""

_SHOW_SECONDS = 0.5

Progress = Callable[[int, int], None]
"""Gets, now and then, how many records were compared and how many bytes were read so far."""


def unheard(records: int, read: int) -> None:
    """Ignore the progress of a comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareLimits:
    """How both sides are read: memory for reading ahead, and which of the source's records count."""

    memory_bytes: int
    isolation: int
    fetch: FetchOptions = ENGINE_CHOOSES


@dataclass(slots=True, kw_only=True)
class Compared:
    """The result of some ranges.

    `records` are those of the source that were compared. `bytes` are those of the batches that were read for it on both
    sides, as stored. `identical` are those of `records` that were compared with the target's record at the same offset,
    because copies have identical offsets. `more` counts differences that are not listed.
    """

    records: int = 0
    bytes: int = 0
    identical: int = 0
    differences: list[Difference] = field(default_factory=list)
    more: int = 0
    not_compared: list[NotCompared] = field(default_factory=list)

    def add(self, other: Compared) -> None:
        """Add the result of others."""
        self.records += other.records
        self.bytes += other.bytes
        self.identical += other.identical
        room = MOST_TOLD - len(self.differences)
        self.differences += other.differences[:room]
        self.more += other.more + len(other.differences[room:])
        self.not_compared += other.not_compared


class Pairing(Protocol):
    """A range that was compared. `bytes` counts what was read of both sides."""

    span: CompareRange
    comparison: Comparison
    bytes: int
    not_compared: NotCompared | None
    """Why not all of it was compared, and from where on."""

    @property
    def left(self) -> Sequence[NotCompared]:
        """Return what was not compared, and why."""


class Reader(Protocol):
    """Reads both sides for a comparison. All decisions are in `rules`; what came of them is in Pairings."""

    async def compare(
        self,
        group: Sequence[CompareRange],
        see: See,
        one_sided: Mapping[TopicPartition, TakeLone],
        tell: Callable[[Sequence[Pairing]], None],
    ) -> Sequence[Pairing]:
        """Read both sides of ranges of different partitions, and compare them. Raises Unreachable.

        `one_sided` has, by source partition, what is called for records that only one side has.
        """

    async def search(self, side: int, place: TopicPartition, take: Callable[[RecordContent], None]) -> str | None:
        """Pass on every record of a log; return a sentence when not all of it can be read."""

    async def read(
        self, side: int, place: TopicPartition, part: Range, take: Callable[[RecordContent], None]
    ) -> str | None:
        """Pass on every record of a part of a log; return a sentence when not all of it can be read."""


class Comparer:
    """Compares what a reader reads. `see` makes what is shown of a record."""

    def __init__(self, reader: Reader, see: See) -> None:
        self._reader = reader
        self._see = see
        self._shown_at = time.monotonic()

    async def compare(self, spans: Sequence[CompareRange], progress: Progress = unheard) -> Compared:
        """Compare all ranges.

        Raises Unreachable when a cluster does not answer any more. A partition that cannot be read on does not stop the
        others: the rest of it is reported as not compared.
        """
        every = Compared()
        for group in groups(spans):
            every.add(await self._group(group, partial(self._tell, every, progress)))
        return every

    def _tell(self, every: Compared, progress: Progress, pairs: Sequence[Pairing]) -> None:
        if time.monotonic() - self._shown_at >= _SHOW_SECONDS:
            self._shown_at = time.monotonic()
            records = sum(pair.comparison.records for pair in pairs)
            progress(every.records + records, every.bytes + sum(pair.bytes for pair in pairs))

    async def _group(self, group: Sequence[CompareRange], tell: Callable[[Sequence[Pairing]], None]) -> Compared:
        lone = {one.source: OneSided() for one in group if one.compacted}
        pairs = await self._reader.compare(group, self._see, {place: one.add for place, one in lone.items()}, tell)
        found = Compared()
        for pair in pairs:
            found.records += pair.comparison.records
            found.bytes += pair.bytes
            found.identical += pair.comparison.records if pair.span.identical else 0
            found.differences += pair.comparison.differences
            found.more += pair.comparison.more
            found.not_compared += pair.left
            if pair.not_compared is None and pair.span.compacted:
                await self._explain(pair.span, lone[pair.span.source], found)
        return found

    # Compacted topics: what only one side has.

    async def _explain(self, span: CompareRange, lone: OneSided, found: Compared) -> None:
        """Search a side's whole log for the reason why it lacks what the other has."""
        if lone.is_full:
            why = f"more than {MOST_KEYS} keys have a record that one side alone has: compare less with --from and --to"
            found.not_compared.append(unreadable(span, why))
            return
        for side in (SOURCE, TARGET):
            if not lone.keys[side]:
                continue
            place = span.target if side == SOURCE else span.source
            failure = await self._reader.search(1 - side, place, partial(lone.look, 1 - side))
            if failure is not None:
                found.not_compared.append(unreadable(span, failure))
                return
            unexplained = lone.unexplained(side)
            offsets = [one.offset for one in unexplained[:SHOWN]]
            found.differences += _differences(span, unexplained, side, await self._record_samples(span, side, offsets))

    async def explain_transformed(self, span: CompareRange, lone: OneSided, found: Compared) -> None:
        """Find out why one side has records alone, if a transform made the target's: its keys are not the source's.

        What the target lacks must have been followed there by a later record. What it has alone is extra only if the
        source still has the record that it was made of: the transform leaves that out now.
        """
        if lone.is_full:
            why = f"more than {MOST_KEYS} keys have a record that one side alone has: compare less with --from and --to"
            found.not_compared.append(unreadable(span, why))
            return
        failure, there = None, set[int]()
        if lone.keys[SOURCE]:
            failure = await self._reader.search(TARGET, span.target, partial(lone.look, TARGET))
        if failure is None and lone.keys[TARGET]:
            failure = await self._reader.read(SOURCE, span.source, span.source_range, lambda one: there.add(one.offset))
        if failure is not None:
            found.not_compared.append(unreadable(span, failure))
            return
        missing = lone.unexplained(SOURCE)  # not shown: the source has them as they were before the transform
        extra = sorted(one for one in lone.keys[TARGET].values() if one.place in there)
        shown = await self._record_samples(span, TARGET, [one.offset for one in extra[:SHOWN]])
        found.differences += [*_differences(span, missing, SOURCE, {}), *_differences(span, extra, TARGET, shown)]

    async def _record_samples(self, span: CompareRange, side: int, offsets: Sequence[int]) -> dict[int, RecordSample]:
        """Read one side's records once more, and return what is shown of them, by offset: they were not kept."""
        place = span.source if side == SOURCE else span.target
        found: list[RecordContent] = []
        for offset in offsets:
            # A record that cannot be read any more is not shown; it is a difference even so.
            await self._reader.read(side, place, (offset, offset + 1), found.append)
        return {content.offset: self._see(content) for content in found}


def groups(spans: Sequence[CompareRange]) -> Iterator[list[CompareRange]]:
    """Group ranges that are read together: small ones, each of another partition; others alone."""
    waiting: dict[TopicPartition, CompareRange] = {}
    for span in spans:
        if span.records > SMALL_RECORDS:
            yield [span]
            continue
        if span.source in waiting or len(waiting) == TOGETHER:
            yield list(waiting.values())
            waiting = {}
        waiting[span.source] = span
    if waiting:
        yield list(waiting.values())


def _differences(
    span: CompareRange, unexplained: Sequence[Lone], side: int, shown: Mapping[int, RecordSample]
) -> Iterator[Difference]:
    kind = DifferenceKind.MISSING if side == SOURCE else DifferenceKind.EXTRA
    for one in unexplained:
        records = (shown[one.offset],) if one.offset in shown else ()
        here, there = (one.offset, one.offset + 1), (one.place, one.place)
        yield Difference(
            source=span.source,
            target=span.target,
            source_range=here if side == SOURCE else there,
            target_range=there if side == SOURCE else here,
            kind=kind,
            source_records=records if side == SOURCE else (),
            target_records=records if side == TARGET else (),
        )
