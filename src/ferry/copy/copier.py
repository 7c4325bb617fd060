"""Moves batches from the fetch buffer into the open transaction: one batch per partition and request.

Several requests are in flight at the same time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import ClassVar

from ferry.copy.batching import Batching, BatchingRules
from ferry.copy.chunk import PartProgress
from ferry.copy.dropped import leader_of
from ferry.copy.prepared_batch import PreparedBatch
from ferry.copy.produce_queue import Entry, ProduceQueue, Request
from ferry.copy.transcode_pool import TranscodePool
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.fetch_buffer import FetchBuffer
from ferry.kafka.produce.writer import Writer
from ferry.messages.refusals import refused_as
from ferry.model import Origin, Plan, Refusal, Slice, TopicPartition

REQUEST_BYTES = 8 << 20
"""A request is closed when it holds this much, unless the file sets less; a single larger batch is sent alone."""

MOST_SEGMENTS = 20_000
"""A chunk ends when a part has this many segments, so that its receipt stays well below the ledger's record limit.

A source of tiny transactions makes one for each marker; 20,000 are about 140 kB compressed.
"""


class Copier:
    """Fills one transaction after the other from one fetch buffer."""

    MARKERS: ClassVar[int] = 1
    """How many markers the target has after the records of a chunk."""

    def __init__(
        self,
        plan: Plan,
        origin: Origin,
        buffer: FetchBuffer,
        target: Cluster,
        writer: Writer,
        pieces: Mapping[TopicPartition, Slice],
        *,
        rules: BatchingRules,
        request_bytes: int = REQUEST_BYTES,
        expected: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """`pieces` are the rests of slices, by source partition.

        `expected` holds by target partition the offset that our first batch must get, where that is known.
        """
        self._buffer = buffer
        self._batching = self._batching_of(rules, TranscodePool(target.loop))
        self.refusals: dict[TopicPartition, Refusal] = {}
        """Refusals of partitions whose reading stopped, by source partition; what came before that is copied."""
        self._plan = plan
        self._origin = origin
        self._target = target
        self._writer = writer
        self._pieces = pieces
        self._positions = {place: (piece.start, piece.target_next) for place, piece in pieces.items()}
        self._expected = dict(expected or {})
        self._request_bytes = request_bytes
        self._parts: dict[TopicPartition, PartProgress] = {}
        self._ready: dict[int, dict[TopicPartition, None]] = {}

    def _batching_of(self, rules: BatchingRules, pool: TranscodePool) -> Batching:
        """Return what prepares the batches."""
        return Batching(self._buffer, rules, pool)

    def _queue(self) -> ProduceQueue:
        """Return what sends the requests of a chunk."""
        return ProduceQueue(self._target, self._writer, self._buffer.wake)

    async def fill(self, chunk_bytes: int, chunk_seconds: float, stop: Callable[[], bool]) -> list[PartProgress]:
        """Copy until the chunk is full, its time is over, nothing is left or `stop()`; wait until all is acknowledged.

        The time of a chunk begins with its first batch. Raises Dropped for partitions that cannot continue, Blocked for
        those that cannot now, Retryable and its subclasses when the chunk must be repeated.
        """
        self._parts = {}
        queue = self._queue()
        copied, until = 0, math.inf
        while copied < chunk_bytes and time.monotonic() < until and queue.most_segments < MOST_SEGMENTS and not stop():
            await queue.settle_answered()
            self._release(queue)
            self._sort_arrivals()
            if not any(self._ready.values()):
                if self._buffer.exhausted():
                    break
                await self._buffer.news(min(1.0, max(0.0, until - time.monotonic())))
                continue
            for node in [node for node, places in self._ready.items() if places]:
                request = self._next_request(node)
                if not request.batches:
                    continue
                if copied:
                    await queue.send(node, request)
                else:
                    until = time.monotonic() + chunk_seconds
                    await queue.send_first(node, request)
                copied += request.bytes
            passed = await self._pass_holes(queue)
            if passed and not copied:
                until = time.monotonic() + chunk_seconds
            copied += passed
        await queue.settle_all()
        self._release(queue)
        parts = [part for part in self._parts.values() if part.moved]
        for part in parts:
            self._positions[part.piece.source] = part.end, part.target_next
            if part.wrote and part.target_next is not None:
                self._expected[part.piece.target] = part.target_next + self.MARKERS
        return parts

    async def _pass_holes(self, queue: ProduceQueue) -> int:
        """Write what the target needs where the source has no record; return how many bytes. Raises as `fill`."""
        return 0

    def _release(self, queue: ProduceQueue) -> None:
        """Let the readers fetch as much as was acknowledged."""
        if queue.acknowledged:
            self._buffer.release(queue.acknowledged)
            queue.acknowledged.clear()

    def _sort_arrivals(self) -> None:
        """Queue partitions with waiting batches by their target leader; note failures."""
        arrived, self._buffer.arrived = self._buffer.arrived, []
        for place in arrived:
            failure = self._buffer.failures.get(place)
            if failure is not None:
                self.refusals[place] = refused_as(failure.message, *place, kind=failure.kind)
            if self._batching.holds(place):
                node = leader_of(self._target, self._pieces[place], self._part(place).end)
                self._ready.setdefault(node, {})[place] = None
            elif place in self._buffer.finished:
                self._finish(place)

    def _finish(self, place: TopicPartition) -> None:
        self._part(place).reached(self._pieces[place].end, self._buffer.marks[place].epoch)

    def _part(self, place: TopicPartition) -> PartProgress:
        part = self._parts.get(place)
        if part is None:
            source_next, target_next = self._positions[place]
            part = self._parts[place] = PartProgress(
                plan=self._plan,
                origin=self._origin,
                piece=self._pieces[place],
                start=source_next,
                end=source_next,
                target_next=target_next,
                expected=self._expected.get(self._pieces[place].target, -1),
            )
        return part

    def _next_request(self, node: int) -> Request:
        """Return one batch of each waiting partition of a broker, up to the request limit."""
        waiting = self._ready[node]
        request = Request()
        for place in list(waiting):
            part = self._part(place)
            out = self._batching.next(place, part)
            if out is not None:
                if request.bytes and request.bytes + len(out.batch.data) > self._request_bytes:
                    break
                self._put(request, part, self._batching.take(place))
                self._batching.look_ahead(place, part)
            if self._batching.is_making(place):
                del waiting[place]  # it is signalled again when it is made
            elif not self._batching.holds(place):
                del waiting[place]
                if place in self._buffer.finished:
                    self._finish(place)
        return request

    def _put(self, request: Request, part: PartProgress, out: PreparedBatch) -> None:
        request.add(Entry(part, out), self._writer.stamped(part.piece.target, out.batch))
        part.sent(out)
