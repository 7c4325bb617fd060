"""Moves batches from the reader into the open transaction: one batch per partition per request, several in flight."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from kafka.future import Future

from ferry.errors import Corrupt, Retryable
from ferry.model import Origin, Plan, Refusal, RefusalKind, Slice, TopicPartition
from ferry.net import codes
from ferry.net.cluster import Cluster
from ferry.net.source import SourceReader
from ferry.net.transaction import Transaction
from ferry.run.chunk import PartProgress
from ferry.run.dropped import dropped
from ferry.wire.batch import Batch, check, obstacle, restamped

IN_FLIGHT = 5
"""Requests under way per broker: the most for which Kafka keeps an idempotent producer's order."""

REQUEST_BYTES = 8 << 20
"""A request is closed when it holds this much; a single larger batch still goes alone."""

Sent = dict[tuple[str, int], tuple[PartProgress, int, int]]
"""By target topic and partition, where a request's batch belongs, its source base offset and its record count."""


class Pump:
    """Fills one transaction after the other from one reader."""

    def __init__(
        self,
        plan: Plan,
        origin: Origin,
        reader: SourceReader,
        target: Cluster,
        transaction: Transaction,
        pieces: Mapping[TopicPartition, Slice],
        positions: Mapping[TopicPartition, tuple[int, int]],
    ) -> None:
        """`pieces` by source partition; `positions` are `(source_next, target_next)` per source partition."""
        self.reader = reader
        self._plan = plan
        self._origin = origin
        self.refusals: dict[TopicPartition, Refusal] = {}
        """By source partition: what stopped on the reading side; what came before it is copied."""
        self._target = target
        self._transaction = transaction
        self._pieces = pieces
        self._positions = dict(positions)
        self._parts: dict[TopicPartition, PartProgress] = {}
        self._ready: dict[int, dict[TopicPartition, None]] = {}
        self._flying: dict[int, deque[tuple[Sent, Future]]] = {}

    async def fill(self, chunk_bytes: int, chunk_seconds: float, stop: Callable[[], bool]) -> list[PartProgress]:
        """Copy until the chunk is full, its time is over, nothing is left or `stop()`; all writes acknowledged.

        Raises Dropped when one partition cannot go on, Retryable and its kin when the chunk must be repeated.
        """
        self._parts = {}
        until = time.monotonic() + chunk_seconds
        copied, opened = 0, False
        while copied < chunk_bytes and time.monotonic() < until and not stop():
            self._sort_arrivals()
            if not any(self._ready.values()):
                if self.reader.exhausted():
                    break
                await self.reader.news(min(1.0, max(0.0, until - time.monotonic())))
                continue
            for node in [node for node, places in self._ready.items() if places]:
                batches, sent = self._next_request(node)
                if not batches:
                    continue
                copied += sum(map(len, batches.values()))
                if opened:
                    await self._send(node, batches, sent)
                else:
                    await self._send_first(node, batches, sent)
                    opened = True
        for node in list(self._flying):
            while self._flying[node]:
                await self._settle(node)
        parts = [part for part in self._parts.values() if part.moved]
        for part in parts:
            self._positions[part.piece.source] = part.end, part.target_next
        return parts

    def _sort_arrivals(self) -> None:
        """Line up partitions with queued batches by their target leader; take note of failures."""
        arrived, self.reader.arrived = self.reader.arrived, []
        for place in arrived:
            failure = self.reader.failures.get(place)
            if failure is not None:
                self.refusals[place] = Refusal(
                    topic=place.topic, partition=place.partition, kind=failure.kind, message=failure.message
                )
            if self.reader.queues[place]:
                self._ready.setdefault(self._target.leader(self._pieces[place].target), {})[place] = None
            elif place in self.reader.finished:
                self._part(place).end = max(self._part(place).end, self.reader.finished[place])

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
            )
        return part

    def _next_request(self, node: int) -> tuple[dict[TopicPartition, memoryview], Sent]:
        """One batch of each waiting partition of a broker, up to the request limit."""
        waiting = self._ready[node]
        batches: dict[TopicPartition, memoryview] = {}
        sent: Sent = {}
        filled = 0
        for place in list(waiting):
            part = self._part(place)
            queue = self.reader.queues[place]
            while queue and queue[0][1]:
                part.pass_over(self.reader.take(place)[0])
            if queue:
                if filled and filled + len(queue[0][0].data) > REQUEST_BYTES:
                    break
                batch, _ = self.reader.take(place)
                self._judge(part.piece, batch)
                target = part.piece.target
                batches[target] = restamped(
                    batch,
                    self._transaction.producer_id,
                    self._transaction.producer_epoch,
                    self._transaction.next_sequence(target, batch.record_count),
                )
                sent[target.topic, target.partition] = part, batch.base_offset, batch.record_count
                part.sent(batch)
                filled += len(batch.data)
            if not queue:
                del waiting[place]
                if place in self.reader.finished:
                    part.end = max(part.end, self.reader.finished[place])
        return batches, sent

    def _judge(self, piece: Slice, batch: Batch) -> None:
        """Raise Dropped for a batch that must not or cannot be copied as bytes."""
        source = piece.source
        why = obstacle(batch)
        if why is not None:
            raise dropped(
                piece,
                Refusal(
                    topic=source.topic,
                    partition=source.partition,
                    kind=RefusalKind.NEEDS_TRANSCODING,
                    message=f"batch at offset {batch.base_offset} of {source} cannot be copied as bytes: {why}; "
                    "records before it are copied",
                ),
                batch.base_offset,
            )
        try:
            check(batch, source.topic, source.partition)
        except Corrupt as error:
            raise dropped(
                piece,
                Refusal(topic=source.topic, partition=source.partition, kind=RefusalKind.CORRUPT, message=str(error)),
                batch.base_offset,
            ) from error

    async def _send_first(self, node: int, batches: dict[TopicPartition, memoryview], sent: Sent) -> None:
        """Open the transaction: alone in flight, repeated while the markers of the one before are being written."""
        await self._transaction.join(batches)
        until = time.monotonic() + self._transaction.timeout_ms / 2000
        while True:
            answer = await self._target.answered(await self._transaction.produce(node, batches))
            again = self._record(sent, answer)
            if not again:
                return
            if time.monotonic() > until:
                raise Retryable(f"{self._transaction.transactional_id}: the transaction before does not complete")
            batches = {place: batches[place] for place in again}
            sent = {(place.topic, place.partition): sent[place.topic, place.partition] for place in again}
            await self._target.loop.sleep(0.005)

    async def _send(self, node: int, batches: dict[TopicPartition, memoryview], sent: Sent) -> None:
        await self._transaction.join(batches)
        flying = self._flying.setdefault(node, deque())
        while len(flying) >= IN_FLIGHT:
            await self._settle(node)
        flying.append((sent, await self._transaction.produce(node, batches)))

    async def _settle(self, node: int) -> None:
        sent, future = self._flying[node].popleft()
        again = self._record(sent, await self._target.answered(future))
        if again:
            raise Retryable(f"{self._transaction.transactional_id}: {again[0]} did not join the transaction")

    def _record(self, sent: Sent, answer: Any) -> list[TopicPartition]:
        """Note where batches came to lie; the partitions whose coordinator says CONCURRENT_TRANSACTIONS."""
        again = []
        names = {self._target.topics[topic].topic_id: topic for topic in {topic for topic, _ in sent}}
        for topic in answer.responses:
            name = topic.name or names[topic.topic_id]
            for outcome in topic.partition_responses:
                part, base, count = sent[name, outcome.index]
                if outcome.error_code == codes.CONCURRENT_TRANSACTIONS:
                    again.append(part.piece.target)
                elif outcome.error_code:
                    self._refused_by_target(part.piece, base, outcome)
                elif not part.written(base, count, outcome.base_offset):
                    _drop(
                        part.piece,
                        RefusalKind.FOREIGN_WRITER,
                        base,
                        f"somebody else wrote to {part.piece.target} on cluster {self._target.alias} while it was "
                        f"being copied (at offset {outcome.base_offset}): find the writer, then run again",
                    )
        return again

    def _refused_by_target(self, piece: Slice, base: int, outcome: Any) -> None:
        code = outcome.error_code
        where = f"{piece.target} on cluster {self._target.alias}"
        if code in (codes.MESSAGE_TOO_LARGE, codes.RECORD_LIST_TOO_LARGE):
            _drop(
                piece,
                RefusalKind.TOO_LARGE,
                base,
                f"the batch at source offset {base} is larger than {where} accepts: raise max.message.bytes there",
            )
        if code in codes.UNAUTHORIZED:
            _drop(piece, RefusalKind.NOT_AUTHORIZED, base, f"not allowed to write to {where}: grant WRITE")
        if code in (codes.INVALID_RECORD, codes.INVALID_TIMESTAMP, codes.CORRUPT_MESSAGE):
            _drop(
                piece,
                RefusalKind.INVALID_CONFIG,
                base,
                f"{where} does not accept the batch at source offset {base} ({codes.describe(code)} "
                f"{outcome.error_message or ''}): compare the topics' timestamp and cleanup settings",
            )
        self._transaction.raise_for(code, f"writing to {piece.target}")


def _drop(piece: Slice, kind: RefusalKind, offset: int, message: str) -> None:
    refusal = Refusal(topic=piece.source.topic, partition=piece.source.partition, kind=kind, message=message)
    raise dropped(piece, refusal, offset)
