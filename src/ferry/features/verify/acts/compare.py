"""Compares stretches of two clusters. It reads both sides of some partitions at a time, in a fixed amount of memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from ferry.config.client_options import ENGINE_CHOOSES, FetchOptions
from ferry.features.verify.rules.differences import SHOWN, SOURCE, TARGET, Comparison, See
from ferry.features.verify.rules.differences import OneSided as TakeLone
from ferry.features.verify.rules.stretches import Stretch, unreadable
from ferry.model import Content, Difference, DifferenceKind, NotCompared, Range, TopicPartition, Witness
from ferry.plan.rules.compaction import MOST_KEYS, Lone, OneSided

TOGETHER = 500
"""Partitions of small stretches that are read at the same time."""

SMALL_RECORDS = 1_000
"""Stretches of so few records are read together: there is room for all of their batches at once."""

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
    """The result of some stretches.

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
    """A stretch that was compared. `bytes` counts what was read of both sides."""

    stretch: Stretch
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
        group: Sequence[Stretch],
        see: See,
        one_sided: Mapping[TopicPartition, TakeLone],
        tell: Callable[[Sequence[Pairing]], None],
    ) -> Sequence[Pairing]:
        """Read both sides of stretches of different partitions, and compare them. Raises Unreachable.

        `one_sided` has, by source partition, what is called for records that only one side has.
        """

    async def search(self, side: int, place: TopicPartition, take: Callable[[Content], None]) -> str | None:
        """Pass on every record of a log; return a sentence when not all of it can be read."""

    async def read(self, side: int, place: TopicPartition, part: Range, take: Callable[[Content], None]) -> str | None:
        """Pass on every record of a part of a log; return a sentence when not all of it can be read."""


class Comparer:
    """Compares what a reader reads. `see` makes what is shown of a record."""

    def __init__(self, reader: Reader, see: See) -> None:
        self._reader = reader
        self._see = see
        self._shown_at = time.monotonic()

    async def compare(self, stretches: Sequence[Stretch], progress: Progress = unheard) -> Compared:
        """Compare all stretches.

        Raises Unreachable when a cluster does not answer any more. A partition that cannot be read on does not stop the
        others: the rest of it is reported as not compared.
        """
        every = Compared()
        for group in groups(stretches):
            every.add(await self._group(group, partial(self._tell, every, progress)))
        return every

    def _tell(self, every: Compared, progress: Progress, pairs: Sequence[Pairing]) -> None:
        if time.monotonic() - self._shown_at >= _SHOW_SECONDS:
            self._shown_at = time.monotonic()
            records = sum(pair.comparison.records for pair in pairs)
            progress(every.records + records, every.bytes + sum(pair.bytes for pair in pairs))

    async def _group(self, group: Sequence[Stretch], tell: Callable[[Sequence[Pairing]], None]) -> Compared:
        lone = {one.source: OneSided() for one in group if one.compacted}
        pairs = await self._reader.compare(group, self._see, {place: one.add for place, one in lone.items()}, tell)
        found = Compared()
        for pair in pairs:
            found.records += pair.comparison.records
            found.bytes += pair.bytes
            found.identical += pair.comparison.records if pair.stretch.identical else 0
            found.differences += pair.comparison.differences
            found.more += pair.comparison.more
            found.not_compared += pair.left
            if pair.not_compared is None and pair.stretch.compacted:
                await self._explain(pair.stretch, lone[pair.stretch.source], found)
        return found

    # Compacted topics: what only one side has.

    async def _explain(self, stretch: Stretch, lone: OneSided, found: Compared) -> None:
        """Search a side's whole log for the reason why it lacks what the other has."""
        if lone.is_full:
            why = f"more than {MOST_KEYS} keys have a record that one side alone has: compare less with --from and --to"
            found.not_compared.append(unreadable(stretch, why))
            return
        for side in (SOURCE, TARGET):
            if not lone.keys[side]:
                continue
            place = stretch.target if side == SOURCE else stretch.source
            failure = await self._reader.search(1 - side, place, partial(lone.look, 1 - side))
            if failure is not None:
                found.not_compared.append(unreadable(stretch, failure))
                return
            unexplained = lone.unexplained(side)
            offsets = [one.offset for one in unexplained[:SHOWN]]
            found.differences += _differences(stretch, unexplained, side, await self._witnesses(stretch, side, offsets))

    async def explain_transformed(self, stretch: Stretch, lone: OneSided, found: Compared) -> None:
        """Find out why one side has records alone, if a transform made the target's: its keys are not the source's.

        What the target lacks must have been followed there by a later record. What it has alone is extra only if the
        source still has the record that it was made of: the transform leaves that out now.
        """
        if lone.is_full:
            why = f"more than {MOST_KEYS} keys have a record that one side alone has: compare less with --from and --to"
            found.not_compared.append(unreadable(stretch, why))
            return
        failure, there = None, set[int]()
        if lone.keys[SOURCE]:
            failure = await self._reader.search(TARGET, stretch.target, partial(lone.look, TARGET))
        if failure is None and lone.keys[TARGET]:
            failure = await self._reader.read(
                SOURCE, stretch.source, stretch.source_range, lambda one: there.add(one.offset)
            )
        if failure is not None:
            found.not_compared.append(unreadable(stretch, failure))
            return
        missing = lone.unexplained(SOURCE)  # not shown: the source has them as they were before the transform
        extra = sorted(one for one in lone.keys[TARGET].values() if one.place in there)
        shown = await self._witnesses(stretch, TARGET, [one.offset for one in extra[:SHOWN]])
        found.differences += [*_differences(stretch, missing, SOURCE, {}), *_differences(stretch, extra, TARGET, shown)]

    async def _witnesses(self, stretch: Stretch, side: int, offsets: Sequence[int]) -> dict[int, Witness]:
        """Read one side's records once more, and return what is shown of them, by offset: they were not kept."""
        place = stretch.source if side == SOURCE else stretch.target
        found: list[Content] = []
        for offset in offsets:
            # A record that cannot be read any more is not shown; it is a difference even so.
            await self._reader.read(side, place, (offset, offset + 1), found.append)
        return {content.offset: self._see(content) for content in found}


def groups(stretches: Sequence[Stretch]) -> Iterator[list[Stretch]]:
    """Group stretches that are read together: small ones, each of another partition; others alone."""
    waiting: dict[TopicPartition, Stretch] = {}
    for stretch in stretches:
        if stretch.records > SMALL_RECORDS:
            yield [stretch]
            continue
        if stretch.source in waiting or len(waiting) == TOGETHER:
            yield list(waiting.values())
            waiting = {}
        waiting[stretch.source] = stretch
    if waiting:
        yield list(waiting.values())


def _differences(
    stretch: Stretch, unexplained: Sequence[Lone], side: int, shown: Mapping[int, Witness]
) -> Iterator[Difference]:
    kind = DifferenceKind.MISSING if side == SOURCE else DifferenceKind.EXTRA
    for one in unexplained:
        records = (shown[one.offset],) if one.offset in shown else ()
        here, there = (one.offset, one.offset + 1), (one.place, one.place)
        yield Difference(
            source=stretch.source,
            target=stretch.target,
            source_range=here if side == SOURCE else there,
            target_range=there if side == SOURCE else here,
            kind=kind,
            source_records=records if side == SOURCE else (),
            target_records=records if side == TARGET else (),
        )
