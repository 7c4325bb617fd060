"""What was fetched and not yet written, partition by partition, within a fixed amount of memory.

Fetchers put batches in and wait for room; the writer takes them out and waits for news.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafka.future import Future
from kafka.net.selector import NetworkSelector

from ferry.errors import Corrupt, FerryError
from ferry.kafka.fetch.epoch_check import UNKNOWN_EPOCH, Mark
from ferry.kafka.fetch.requests import READ_COMMITTED, FetchedPartition
from ferry.messages.catalogue import sentence
from ferry.model import RefusalKind, TopicPartition
from ferry.wire.aborted import AbortedTransactions
from ferry.wire.batch import DAMAGED, Batch, batches, check, whole_batch_bytes
from ferry.wire.order import beyond, disorder

MIN_PARTITION_BYTES = 256 << 10
_MAX_BATCH_BYTES = 1 << 30
"""Bytes above which a batch length is damage: no broker accepts a batch this large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFailure:
    """A partition that cannot be read past `offset`, whatever is tried."""

    kind: RefusalKind
    message: str
    offset: int


class Answer:
    """The memory of one fetch answer. Batches are views of it: the last batch that is needed keeps all of it."""

    __slots__ = ("needed", "size")

    def __init__(self, size: int) -> None:
        """`size` in bytes, cut-off batches included."""
        self.size = size
        self.needed = 0


class Fetched(NamedTuple):
    """A batch that waits to be written.

    `hidden`: its records are not copied (a marker, aborted, or without records).
    """

    batch: Batch
    hidden: bool
    answer: Answer


class FetchBuffer:
    """Batches of each partition in offset order, up to the batch that holds the last wanted offset."""

    def __init__(
        self,
        loop: NetworkSelector,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        memory_bytes: int,
        marks: Mapping[TopicPartition, Mark] | None = None,
        *,
        isolation: int = READ_COMMITTED,
        checked: bool = True,
    ) -> None:
        """`ranges` are `[start, end)` per partition; `marks` show what was read of some of them before.

        Not `checked`: the checksums of the batches were not checked, and the caller that takes them has to check them.
        """
        self.queues: dict[TopicPartition, deque[Fetched]] = {place: deque() for place in ranges}
        self.finished: set[TopicPartition] = set()
        """Partitions read to their end."""
        self.failures: dict[TopicPartition, ReadFailure] = {}
        self.arrived: list[TopicPartition] = []
        """Partitions that got batches, or came to their end, since the caller last cleared the list."""
        self.positions = {place: start for place, (start, _) in ranges.items()}
        """The next offset to read of each partition; after its end, when the end is inside the last batch."""
        self.ends = {place: end for place, (_, end) in ranges.items()}
        self.marks = {place: Mark(UNKNOWN_EPOCH, start) for place, (start, _) in ranges.items()} | dict(marks or {})
        """What was read of each partition's log, at any time."""
        self.memory_bytes = memory_bytes
        self.closed = False
        self._loop = loop
        self._isolation = isolation
        self._check = check if checked else _believe
        self._aborted = {place: AbortedTransactions() for place in ranges}
        self._begun: set[TopicPartition] = set()  # a batch was taken: what follows has higher offsets
        self._doubted: dict[TopicPartition, int] = {}
        """The end that the next batch claims, where the answer reported that fewer offsets can be read."""
        self._needs: dict[TopicPartition, int] = {}
        self._queued = dict.fromkeys(ranges, 0)  # bytes in each queue
        self._held = 0  # bytes of answers with a batch that is queued, or taken and not released yet
        self._asked = 0
        self._error: FerryError | None = None
        self._news: Future | None = None
        self._room: list[Future] = []  # feeders that wait for memory
        self._full: list[Future] = []  # feeders whose partitions have enough queued

    # The writer's side.

    def take(self, place: TopicPartition) -> Fetched:
        """Return the next batch of a partition. Its answer counts against the memory until `release` gets it."""
        found = self.queues[place].popleft()
        self._queued[place] -= len(found.batch.data)
        return found

    def release(self, answers: Iterable[Answer]) -> None:
        """Release one batch of each of these answers: it was taken, and is not needed any more."""
        for answer in answers:
            answer.needed -= 1
            if not answer.needed:
                self._held -= answer.size
        self._let_in()

    def give_up(self, place: TopicPartition, failure: ReadFailure) -> None:
        """Stop reading a partition, because the caller cannot use what comes next; drop what is queued of it."""
        queue = self.queues[place]
        self.release([found.answer for found in queue])
        queue.clear()
        self._queued[place] = 0
        self.finished.discard(place)
        self._fail(place, failure)

    def exhausted(self) -> bool:
        """Return whether every partition is finished or failed, and its queue is empty."""
        settled = len(self.finished) + len(self.failures) == len(self.queues)
        return settled and not any(self.queues.values())

    async def news(self, timeout_s: float) -> None:
        """Wait until batches arrive, a partition ends or the time is over; raise what stopped the reading."""
        if self._error is None and not self.arrived:
            self._news = waiting = Future()
            timer = self._loop.call_later(timeout_s, lambda: _resolve(waiting))
            await waiting
            self._loop.cancel(timer)
        if self._error is not None:
            raise self._error

    def wake(self) -> None:
        """Wake the writer that waits for news."""
        waiting, self._news = self._news, None
        if waiting is not None:
            _resolve(waiting)

    # The feeders' side.

    def wanted(self, place: TopicPartition) -> bool:
        """Return whether more is to be read of a partition."""
        return place not in self.finished and place not in self.failures

    def needed(self, places: Iterable[TopicPartition]) -> int:
        """Return the size in bytes of the largest batch that did not come whole; 0 when there is none."""
        return max((self._needs.get(place, 0) for place in places), default=0)

    def hungry(self, places: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return those of the partitions that have less than their share queued.

        Small batches are written slowly, and must not fill the memory.
        """
        unsettled = len(self.queues) - len(self.finished) - len(self.failures)
        share = self.memory_bytes // (2 * max(1, unsettled))
        return [place for place in places if self._queued[place] <= share]

    async def reserve(self, size: int, places: Iterable[TopicPartition]) -> None:
        """Wait for room for an answer of `size` bytes, and until one of the requested partitions is hungry.

        Ends early when the buffer is closed.
        """
        while not self.closed:
            if not self.hungry(places):
                await self._in_line(self._full)
            elif not self._has_room(size):
                await self._in_line(self._room)
            else:
                break
        self._asked += size

    @staticmethod
    async def _in_line(line: list[Future]) -> None:
        turn = Future()
        line.append(turn)
        await turn

    def _has_room(self, size: int) -> bool:
        # A batch may be larger than all the memory: one fetch at a time is always allowed.
        return self._held + self._asked + size <= self.memory_bytes or not self._held + self._asked

    def unreserve(self, size: int) -> None:
        """Return the room of a fetch, with or without an answer."""
        self._asked -= size
        self._let_in()

    def put(self, part: FetchedPartition, answer: Answer) -> None:  # noqa: C901  # one loop over an answer's batches
        """Take in one partition's part of an answer."""
        place, end = part.place, self.ends[part.place]
        aborted = self._aborted[place]
        aborted.learn(part.aborted)
        queue, position = self.queues[place], self.positions[place]
        arrived = comes_again = False
        found, readable = list(batches(part.records)), part.readable(self._isolation)
        for index, batch in enumerate(found):
            try:
                comes_again = not self._is_sound(place, found, index, position, readable)
            except Corrupt as error:
                self.positions[place] = position
                self.fail(place, RefusalKind.CORRUPT, str(error))
                return
            if comes_again:
                break
            if batch.next_offset <= position:  # only before the first batch: brokers may begin an answer earlier
                continue
            if arrived and batch is found[-1] and batch.base_offset > position and not batch.is_wrapper:
                break  # after a hole, nothing confirms its base offset: it comes again with the next batch
            self._begun.add(place)
            if batch.base_offset >= end and not batch.is_wrapper:
                position = end
                self.marks[place] = Mark(batch.leader_epoch, end)  # it shows that there is nothing before it
                break
            try:
                hidden = aborted.leaves_out(batch)
            except Corrupt as error:
                self.positions[place] = position
                self.fail(place, RefusalKind.CORRUPT, f"{place}: {error}; {DAMAGED}")
                return
            if not answer.needed:
                self._held += answer.size
            answer.needed += 1
            queue.append(Fetched(batch, hidden, answer))
            self._queued[place] += len(batch.data)
            position = batch.next_offset
            self.marks[place] = Mark(batch.leader_epoch, position)
            arrived = True
            if position >= end:
                break
        if arrived:
            self.arrived.append(place)
            self._needs.pop(place, None)
        elif part.records and position < end and not comes_again:
            self._ask_for_more(place, part.records)
        self.positions[place] = position
        if position >= end:
            self.finish(place)

    def _is_sound(
        self, place: TopicPartition, found: Sequence[Batch], index: int, position: int, readable: int
    ) -> bool:
        """Judge a batch before its header is trusted. False: a later answer must bring the batch again.

        Raises Corrupt.
        """
        batch = found[index]
        self._check(batch, place.topic, place.partition)
        wrong = disorder(found, index, position, place, begun=place in self._begun)
        if wrong is None and batch.next_offset > readable:  # it is damaged, or the log grew while the broker read it
            if self._doubted.get(place) != batch.next_offset:
                self._doubted[place] = batch.next_offset
                return False
            wrong = beyond(batch, readable, place)
        if wrong is not None:
            raise Corrupt(wrong)
        return True

    def _ask_for_more(self, place: TopicPartition, records: bytes | memoryview) -> None:
        """Set the next fetch to the batch's own length, because no whole batch came.

        Fail if that length cannot be true.
        """
        needed = whole_batch_bytes(records) or MIN_PARTITION_BYTES
        if len(records) < needed <= _MAX_BATCH_BYTES:
            self._needs[place] = needed
            return
        self.fail(
            place,
            RefusalKind.CORRUPT,
            sentence("source.damaged", at=self.positions[place], source=str(place), bytes=needed),
        )

    def finish_empty(self, place: TopicPartition, leader_epoch: int) -> None:
        """Finish a partition: the log of that leader epoch has nothing more before the end of the range."""
        self.marks[place] = Mark(leader_epoch, self.ends[place])
        self.finish(place)

    def finish(self, place: TopicPartition) -> None:
        """Mark a partition as read to its end."""
        self.finished.add(place)
        self.arrived.append(place)

    def fail(self, place: TopicPartition, kind: RefusalKind, message: str) -> None:
        """Mark a partition as failed at its position: it cannot be read further."""
        self._fail(place, ReadFailure(kind=kind, message=message, offset=self.positions[place]))

    def _fail(self, place: TopicPartition, failure: ReadFailure) -> None:
        self.failures[place] = failure
        self.arrived.append(place)

    def stop(self, error: FerryError) -> None:
        """Stop all reading: the writer that waits for news gets the error."""
        if not self.closed:
            self._error = error
        self.close()
        self.wake()

    def close(self) -> None:
        """Stop reading; answers that are still on their way are dropped."""
        self.closed = True
        self._wake_feeders()

    def _let_in(self) -> None:
        """Wake the waiting fetchers: for memory, when there is some, or when nothing else could free any."""
        _resolve_all(self._full)
        if self._held * 2 < self.memory_bytes or not self._held + self._asked:
            _resolve_all(self._room)

    def _wake_feeders(self) -> None:
        _resolve_all(self._full)
        _resolve_all(self._room)


def _believe(batch: Batch, topic: str, partition: int) -> None:
    """Trust a batch without a check of its checksum."""


def _resolve_all(line: list[Future]) -> None:
    waiting = line[:]
    line.clear()
    for future in waiting:
        _resolve(future)


def _resolve(future: Future) -> None:
    if not future.is_done:
        future.success(None)
