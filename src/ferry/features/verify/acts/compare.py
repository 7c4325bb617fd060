"""Compares stretches of two clusters. It reads both sides of some partitions at a time, in a fixed amount of memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from ferry.config.flow.clients import ENGINE_CHOOSES, FetchOptions
from ferry.errors import Unreachable
from ferry.features.verify.acts.pairing import SOURCE, TARGET, Pair, Side, opened
from ferry.features.verify.rules.differences import SHOWN
from ferry.features.verify.rules.stretches import Stretch, unreadable
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.kafka.fetch.source import SourceReader
from ferry.lane.connections import FlowConnections
from ferry.model import Content, Difference, DifferenceKind, NotCompared, Range, TopicPartition, Witness
from ferry.plan.rules.compaction import MOST_KEYS, Lone, OneSided
from ferry.wire.codecs import Malformed, TooLong

TOGETHER = 500
"""Partitions of small stretches that are read at the same time."""

SMALL_RECORDS = 1_000
"""Stretches of so few records are read together: there is room for all of their batches at once."""

_NEWS_SECONDS = 0.05
_STALL_SECONDS = 5.0
"""If nothing came for so many seconds, though both sides are read, each may wait for room that only the other can
make."""


MOST_TOLD = 10_000
"""Differences of all partitions that are reported one by one; further ones are counted."""

_TELL_SECONDS = 0.5

Progress = Callable[[int, int], None]
"""Gets, now and then, how many records were compared and how many bytes were read so far."""


def unheard(records: int, read: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareLimits:
    """How both sides are read: memory for reading ahead, and which of the source's records count."""

    memory_bytes: int
    isolation: int
    fetch: FetchOptions = ENGINE_CHOOSES


@dataclass(slots=True, kw_only=True)
class Compared:
    """The result of some stretches. The counts mean the same as those of Verified."""

    records: int = 0
    bytes: int = 0
    differences: list[Difference] = field(default_factory=list)
    more: int = 0
    not_compared: list[NotCompared] = field(default_factory=list)

    def add(self, other: Compared) -> None:
        """Add the result of others."""
        self.records += other.records
        self.bytes += other.bytes
        room = MOST_TOLD - len(self.differences)
        self.differences += other.differences[:room]
        self.more += other.more + len(other.differences[room:])
        self.not_compared += other.not_compared


class Comparer:
    """Reads and compares over a flow's connections. `see` makes what is shown of a record."""

    def __init__(self, connections: FlowConnections, limits: CompareLimits, see: Callable[[Content], Witness]) -> None:
        self._source, self._target = connections.source, connections.target
        self._loop = connections.loop
        self._limits = limits
        self._see = see
        self._told = time.monotonic()

    async def compare(self, stretches: Sequence[Stretch], progress: Progress = unheard) -> Compared:
        """Compare all stretches.

        Raises Unreachable when a cluster does not answer any more. A partition that cannot be read on does not stop the
        others: the rest of it is reported as not compared.
        """
        every = Compared()
        for group in groups(stretches):
            every.add(await self._group(group, partial(self._tell, every, progress)))
        return every

    def _tell(self, every: Compared, progress: Progress, pairs: Sequence[Pair]) -> None:
        if time.monotonic() - self._told >= _TELL_SECONDS:
            self._told = time.monotonic()
            records = sum(pair.comparison.records for pair in pairs)
            progress(every.records + records, every.bytes + sum(pair.bytes for pair in pairs))

    async def _group(self, group: Sequence[Stretch], tell: Callable[[Sequence[Pair]], None]) -> Compared:
        source = self._reader(
            self._source, {one.source: one.source_range for one in group}, self._limits.isolation, checked=False
        )
        target = self._reader(self._target, {one.target: one.target_range for one in group}, READ_COMMITTED)
        lone = {one.source: OneSided() for one in group if one.compacted}
        pairs = [
            Pair(
                one,
                self._side(self._source, source, one.source, one.source_range, checked=False),
                self._side(self._target, target, one.target, one.target_range),
                self._see,
                lone[one.source].add if one.compacted else None,
            )
            for one in group
        ]
        try:
            for reader in (source, target):
                await reader.start()
            await self._run(pairs, (source, target), tell)
        finally:
            source.close()
            target.close()
        found = Compared()
        for pair in pairs:
            found.records += pair.comparison.records
            found.bytes += pair.bytes
            found.differences += pair.comparison.differences
            found.more += pair.comparison.more
            found.not_compared += pair.left
            if pair.not_compared is None and pair.stretch.compacted:
                await self._explain(pair.stretch, lone[pair.stretch.source], found)
        return found

    async def _run(
        self,
        pairs: Sequence[Pair],
        readers: tuple[SourceReader, SourceReader],
        tell: Callable[[Sequence[Pair]], None],
    ) -> None:
        moved = widened = time.monotonic()
        left = list(pairs)
        while True:
            came = any(reader.buffer.arrived for reader in readers)
            for reader in readers:
                reader.buffer.arrived.clear()
            for pair in left:
                pair.advance()
            tell(pairs)
            left = [pair for pair in left if not pair.is_done]
            if not left:
                return
            now = time.monotonic()
            if came:
                moved = widened = now
            elif now - moved > self._source.patience_s + _STALL_SECONDS:
                raise Unreachable(f"{left[0].stretch.source}: neither side sends what is due: look at both clusters")
            elif now - widened > _STALL_SECONDS:
                widened = now
                for reader in readers:
                    reader.buffer.memory_bytes *= 2
                    reader.buffer.release(())
            side = SOURCE if any(pair.lacks(SOURCE) for pair in left) else TARGET
            await readers[side].buffer.news(_NEWS_SECONDS)

    def _reader(
        self, cluster: Cluster, ranges: Mapping[TopicPartition, Range], isolation: int, *, checked: bool = True
    ) -> SourceReader:
        return SourceReader(
            cluster,
            {place: (start, end) for place, (start, end) in ranges.items() if start < end},
            {},
            isolation=isolation,
            memory_bytes=self._limits.memory_bytes // 2,
            options=self._limits.fetch,
            checked=checked,
        )

    def _side(
        self, cluster: Cluster, reader: SourceReader, place: TopicPartition, part: Range, *, checked: bool = True
    ) -> Side:
        buffer = reader.buffer if part[0] < part[1] else None
        return Side(alias=cluster.alias, place=place, range=part, buffer=buffer, checked=checked)

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
            cluster, place = (self._target, stretch.target) if side == SOURCE else (self._source, stretch.source)
            failure = await self._look(cluster, place, 1 - side, lone)
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
            failure = await self._look(self._target, stretch.target, TARGET, lone)
        if failure is None and lone.keys[TARGET]:
            failure = await self._read(
                self._source, stretch.source, stretch.source_range, SOURCE, lambda one: there.add(one.offset)
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
        cluster, place = (self._source, stretch.source) if side == SOURCE else (self._target, stretch.target)
        found: list[Content] = []
        for offset in offsets:
            # A record that cannot be read any more is not shown; it is a difference even so.
            await self._read(cluster, place, (offset, offset + 1), side, found.append)
        return {content.offset: self._see(content) for content in found}

    async def _look(self, cluster: Cluster, place: TopicPartition, side: int, lone: OneSided) -> str | None:
        """Show every record of a log to `lone`; return a sentence when not all of it can be read."""
        isolation = self._isolation(side)
        begins = await listed_offsets(cluster, {place: EARLIEST}, isolation=READ_UNCOMMITTED)
        ends = await listed_offsets(cluster, {place: LATEST}, isolation=isolation)
        if place not in begins.found or place not in ends.found:
            return f"the log of {place} on cluster {cluster.alias} cannot be searched for later records"
        part = begins.found[place], ends.found[place]
        return await self._read(cluster, place, part, side, partial(lone.look, side))

    def _isolation(self, side: int) -> int:
        return READ_COMMITTED if side == TARGET else self._limits.isolation

    async def _read(
        self, cluster: Cluster, place: TopicPartition, part: Range, side: int, take: Callable[[Content], None]
    ) -> str | None:
        """Pass on every record of a part of a log; return a sentence when not all of it can be read."""
        reader = self._reader(cluster, {place: part}, self._isolation(side))
        one = self._side(cluster, reader, place, part)
        try:
            await reader.start()
            while not one.is_over:
                if one.failure is not None:
                    return f"{place} on cluster {cluster.alias}: {one.failure.message}"
                while (batch := one.head) is not None:
                    for content in opened(batch, part):
                        take(content)
                    one.take()
                reader.buffer.arrived.clear()
                if not one.is_over:
                    await reader.buffer.news(1.0)
        except (Malformed, TooLong) as error:
            return f"a batch of {place} on cluster {cluster.alias} cannot be opened: {error}"
        finally:
            reader.close()
        return None


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
