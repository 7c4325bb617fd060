"""Produce requests in flight into the open transaction, and what their answers report for each partition."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka.future import Future

from ferry.copy.dropped import answered_drop, leader_of, out_of_time
from ferry.copy.part import Part
from ferry.copy.prepared_batch import PreparedBatch
from ferry.errors import Retryable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.fetch_buffer import Answer
from ferry.kafka.produce.writer import PartitionsRefused, Writer
from ferry.model import Slice, TopicPartition
from ferry.protocol.drops import Drop, drop, verdict

IN_FLIGHT = 5
"""Requests in flight per broker: the most for which Kafka keeps an idempotent producer's order."""

_NOT_ACCEPTED = {
    codes.INVALID_RECORD: "batch.not-accepted",
    codes.CORRUPT_MESSAGE: "batch.not-accepted",
    codes.UNSUPPORTED_FOR_MESSAGE_FORMAT: "batch.old-format",
    codes.UNSUPPORTED_COMPRESSION_TYPE: "batch.compression",
}
"""The refusals of batches that the target does not take, however often they are sent."""


class Entry(NamedTuple):
    """A batch of a request, and the part of the chunk that it belongs to."""

    part: Part
    out: PreparedBatch


@dataclass(slots=True)
class Request:
    """One batch for each of some target partitions of one broker."""

    batches: dict[TopicPartition, memoryview] = field(default_factory=dict)
    entries: dict[tuple[str, int], Entry] = field(default_factory=dict)
    """The queued entry of each target topic and partition."""
    bytes: int = 0

    def add(self, entry: Entry, batch: memoryview) -> None:
        """Add one more batch, the only one of its partition."""
        target = entry.part.piece.target
        self.batches[target] = batch
        self.entries[target.topic, target.partition] = entry
        self.bytes += len(batch)

    def only(self, targets: list[TopicPartition]) -> Request:
        """Return the part of the request that is for these partitions."""
        rest = Request()
        for target in targets:
            rest.add(self.entries[target.topic, target.partition], self.batches[target])
        return rest


class ProduceQueue:
    """Sends requests, up to five in flight per broker, and notes the answers in the chunk's parts."""

    def __init__(self, target: Cluster, writer: Writer, answered: Callable[[], None]) -> None:
        """`answered` is called when a request in flight was answered or has failed; it must not send."""
        self.acknowledged: list[Answer] = []
        """The fetch answers of the batches that were acknowledged since the caller last cleared this list."""
        self.most_segments = 0
        """The number of segments of the part that has most."""
        self._target = target
        self._writer = writer
        self._answered = answered
        self._flying: dict[int, deque[tuple[Request, Future]]] = {}

    @property
    def in_flight(self) -> bool:
        """Whether a request waits for its answer."""
        return any(self._flying.values())

    async def send_first(self, node: int, request: Request) -> None:
        """Open the transaction by a request that is alone in flight.

        It is repeated while the markers of the transaction before are being written. Raises Dropped for partitions that
        cannot continue, Blocked for those that cannot now, Retryable and its subclasses when the chunk must be
        repeated.
        """
        await self._join(request)
        await self._send_alone(node, request)

    async def _send_alone(self, node: int, request: Request) -> None:
        """Send a request with nothing else in flight to the broker, again for partitions that could not join yet."""
        left = request

        async def send() -> None:
            nonlocal left
            answer = await self._target.answered(await self._writer.produce(node, left.batches))
            again = self._note(left, answer)
            if again:
                left = left.only(again)
                self._writer.raise_for(codes.CONCURRENT_TRANSACTIONS, f"writing to {again[0]}")

        await self._writer.patiently(send)

    async def send(self, node: int, request: Request) -> None:
        """Send one more request; waits while five are in flight to the broker.

        Raises Dropped for partitions that cannot continue, Blocked for those that cannot now, Retryable and its
        subclasses when the chunk must be repeated.
        """
        await self._join(request)
        flying = self._flying.setdefault(node, deque())
        while len(flying) >= IN_FLIGHT:
            await self._settle(node, flying)
        future = await self._writer.produce(node, request.batches)
        future.add_both(lambda _: self._answered())
        flying.append((request, future))

    async def send_batch(
        self, part: Part, out: PreparedBatch, offset: int, *, first: bool, leaderless: str = "target.leaderless"
    ) -> int:
        """Send one batch in a request of its own; return its bytes. `first`: nothing of the chunk was sent before.

        Raises Blocked if its partition has no leader: a drop at the source offset, with the refusal `leaderless`.
        Raises the errors of `send`, too.
        """
        target = part.piece.target
        node = leader_of(self._target, part.piece, offset, leaderless)
        request = Request()
        request.add(Entry(part, out), self._writer.stamped(target, out.batch))
        await (self.send_first if first else self.send)(node, request)
        return request.bytes

    async def _join(self, request: Request) -> None:
        try:
            await self._writer.join(request.batches)
        except PartitionsRefused as error:
            found = [(request.entries[place.topic, place.partition], code) for place, code in error.codes.items()]
            raise verdict(self._refused(entry.part.piece, entry.out.start, code) for entry, code in found) from error

    async def settle_answered(self) -> None:
        """Note the answers that have come.

        Raises Dropped for partitions that cannot continue, Blocked for those that cannot now, Retryable and its
        subclasses when the chunk must be repeated.
        """
        for node, flying in self._flying.items():
            while flying and flying[0][1].is_done:
                await self._settle(node, flying)

    async def settle_all(self) -> None:
        """Wait for all answers.

        Raises Dropped for partitions that cannot continue, Blocked for those that cannot now, Retryable and its
        subclasses when the chunk must be repeated.
        """
        for node, flying in self._flying.items():
            while flying:
                await self._settle(node, flying)

    async def _settle(self, node: int, flying: deque[tuple[Request, Future]]) -> None:
        """Note the oldest answer; send again what the broker did not take because its partition could not join yet.

        Two brokers that ask the coordinator at the same time to add partitions interfere. One of them gets
        CONCURRENT_TRANSACTIONS, and returns it if its own repetitions (100 ms unless set) do not help.
        """
        request, future = flying.popleft()
        again = self._note(request, await self._target.answered(future))
        if not again:
            return
        waiting, late = [request.only(again)], set(again)
        while flying:  # what was sent after it for the same partitions is out of order there
            request, future = flying.popleft()
            again = self._note(request, await self._target.answered(future), late)
            if again:
                waiting.append(request.only(again))
                late.update(again)
        for request in waiting:
            await self._send_alone(node, request)

    def _note(self, request: Request, answer: Any, late: Collection[TopicPartition] = ()) -> list[TopicPartition]:
        """Note the offsets that batches got; return the partitions that could not join the transaction.

        They took nothing. `late`: partitions whose batch before this one could not join, so that this one is out of
        order.
        """
        again: list[TopicPartition] = []
        drops: list[Drop] = []
        names = {
            self._target.topics[topic].topic_id: topic
            for topic in {topic for topic, _ in request.entries}
            if topic in self._target.topics
        }
        for topic in answer.responses:
            name = topic.name or names.get(topic.topic_id)
            if name is None:  # the metadata no longer has the topic, so the chunk is repeated without it
                raise Retryable(f"cluster {self._target.alias} answers for a topic that was deleted since it was asked")
            for outcome in topic.partition_responses:
                part, out = request.entries[name, outcome.index]
                base = out.start
                if part.piece.target in late:
                    if outcome.error_code not in (codes.CONCURRENT_TRANSACTIONS, codes.OUT_OF_ORDER_SEQUENCE_NUMBER):
                        raise Retryable(
                            f"{part.piece.target} answers {codes.describe(outcome.error_code)} to a batch, and the one "
                            "before it could not join the transaction"
                        )
                    again.append(part.piece.target)
                elif not outcome.error_code:
                    drops += self._taken(part, out, outcome.base_offset)
                elif outcome.error_code == codes.CONCURRENT_TRANSACTIONS:
                    again.append(part.piece.target)
                elif (against := self._refusal(part.piece, base, outcome)) is not None:
                    drops.append(against)
                else:
                    self._writer.raise_for(outcome.error_code, f"writing to {part.piece.target}")
        if drops:
            raise verdict(drops)
        return again

    def _taken(self, part: Part, out: PreparedBatch, base: int) -> list[Drop]:
        """Note that a batch was written at `base`; return why its partition cannot continue, empty if it can.

        Raises Retryable if the first batch of a chunk is elsewhere than expected.
        """
        wrong = self._misplaced(part, out, base)
        if wrong is not None:
            return [wrong]
        self.acknowledged += out.answers
        if part.is_elsewhere(base):
            raise Retryable(
                f"a batch was written at offset {base} of {part.piece.target} instead of {part.expected}: another "
                "client may have written there"
            )
        if not part.written(out.runs, base):
            return [self._foreign(part.piece, out.start, base)]
        self.most_segments = max(self.most_segments, len(part.segments))
        return []

    def _misplaced(self, part: Part, out: PreparedBatch, base: int) -> Drop | None:
        """Return why a batch may not be at `base` of the target, whatever is before it; None: it may be anywhere."""
        return None

    def _foreign(self, piece: Slice, base: int, found: int) -> Drop:
        return drop("foreign.at-work", piece, base, place=str(piece.target), cluster=self._target.alias, at=found)

    def _refused(self, piece: Slice, base: int, code: int) -> Drop | None:
        return answered_drop(piece, base, code, self._target.alias, "write to", "WRITE")

    def _refusal(self, piece: Slice, base: int, outcome: Any) -> Drop | None:
        """Return why the target does not take the batch; None when the error does not concern the batch."""
        code = outcome.error_code
        place, cluster = str(piece.target), self._target.alias
        if code in (codes.MESSAGE_TOO_LARGE, codes.RECORD_LIST_TOO_LARGE):
            return drop("batch.too-large", piece, base, at=base, place=place, cluster=cluster)
        if code == codes.INVALID_TIMESTAMP:
            words = [each.batch_index_error_message for each in outcome.record_errors or ()]
            return out_of_time(piece, base, self._target.alias, [*words, outcome.error_message])
        if code in _NOT_ACCEPTED:
            why = f"{codes.describe(code)} {outcome.error_message or ''}".rstrip()
            return drop(_NOT_ACCEPTED[code], piece, base, at=base, place=place, cluster=cluster, words=why)
        return self._refused(piece, base, code)
