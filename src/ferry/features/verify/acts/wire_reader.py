"""Reads both sides of a comparison with Ferry's own fetch. Batches that are the same are not opened.

It reads some partitions at a time, in a fixed amount of memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from ferry.errors import Unreachable
from ferry.features.verify.acts.compare import CompareLimits
from ferry.features.verify.acts.pairing import Pair, Side, opened
from ferry.features.verify.rules.compare_ranges import CompareRange
from ferry.features.verify.rules.differences import SOURCE, TARGET, OneSided, See
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.kafka.fetch.source import SourceReader
from ferry.lane.connections import FlowConnections
from ferry.model import Range, RecordContent, TopicPartition
from ferry.wire.codecs import Malformed, TooLong

_NEWS_SECONDS = 0.05
_STALL_SECONDS = 5.0
"""If nothing came for so many seconds, though both sides are read, each may wait for room that only the other can
make."""


class WireReader:
    """Reads over a flow's connections."""

    def __init__(self, connections: FlowConnections, limits: CompareLimits) -> None:
        self._source, self._target = connections.source, connections.target
        self._limits = limits

    async def compare(
        self,
        group: Sequence[CompareRange],
        see: See,
        one_sided: Mapping[TopicPartition, OneSided],
        tell: Callable[[Sequence[Pair]], None],
    ) -> Sequence[Pair]:
        """Read both sides of ranges of different partitions, and compare them. Raises Unreachable."""
        source = self._reader(
            self._source, {one.source: one.source_range for one in group}, self._limits.isolation, checked=False
        )
        target = self._reader(self._target, {one.target: one.target_range for one in group}, READ_COMMITTED)
        pairs = [
            Pair(
                one,
                self._side(self._source, source, one.source, one.source_range, checked=False),
                self._side(self._target, target, one.target, one.target_range),
                see,
                one_sided.get(one.source),
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
        return pairs

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
                raise Unreachable(f"{left[0].span.source}: neither side sends what is due: look at both clusters")
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

    async def search(self, side: int, place: TopicPartition, take: Callable[[RecordContent], None]) -> str | None:
        """Pass on every record of a log; return a sentence when not all of it can be read."""
        cluster = self._cluster(side)
        begins = await listed_offsets(cluster, {place: EARLIEST}, isolation=READ_UNCOMMITTED)
        ends = await listed_offsets(cluster, {place: LATEST}, isolation=self._isolation(side))
        if place not in begins.found or place not in ends.found:
            return f"the log of {place} on cluster {cluster.alias} cannot be searched for later records"
        return await self.read(side, place, (begins.found[place], ends.found[place]), take)

    async def read(
        self, side: int, place: TopicPartition, part: Range, take: Callable[[RecordContent], None]
    ) -> str | None:
        """Pass on every record of a part of a log; return a sentence when not all of it can be read."""
        cluster = self._cluster(side)
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

    def _cluster(self, side: int) -> Cluster:
        return self._target if side == TARGET else self._source

    def _isolation(self, side: int) -> int:
        return READ_COMMITTED if side == TARGET else self._limits.isolation
