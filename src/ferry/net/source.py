"""Reads bounded ranges of many partitions ahead of the writer, within a fixed amount of memory.

Each leader is read by a few feeders, each with its own fetch under way, so that a distant source is asked for the
next pieces while earlier ones travel.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka.future import Future

from ferry.errors import FerryError, Retryable
from ferry.model import RefusalKind, TopicPartition
from ferry.net import codes
from ferry.net.cluster import Cluster
from ferry.net.fetch import READ_COMMITTED, FetchedPartition, fetch_request, fetched
from ferry.wire.aborted import AbortedTransactions
from ferry.wire.batch import Batch, batches, whole_batch_bytes

FEEDERS_PER_LEADER = 3
_MIN_FETCH_BYTES = 1 << 20
_MIN_PARTITION_BYTES = 256 << 10
_MAX_BATCH_BYTES = 1 << 30
"""No broker takes a batch this large; a length beyond it is damage."""

_MAX_WAIT_MS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFailure:
    """A partition that cannot be read past `offset`, whatever is tried."""

    kind: RefusalKind
    message: str
    offset: int


class SourceReader:
    """Batches of each partition in offset order, up to the batch that holds the last wanted offset."""

    def __init__(
        self,
        cluster: Cluster,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        topic_ids: Mapping[str, str],
        *,
        isolation: int,
        memory_bytes: int,
    ) -> None:
        """`ranges` are `[start, end)` per partition; `topic_ids` (hex, may be empty) must be the plan's."""
        self.queues: dict[TopicPartition, deque[tuple[Batch, bool]]] = {place: deque() for place in ranges}
        self.finished: dict[TopicPartition, int] = {}
        """Partitions read to their end, with the offset that was reached."""
        self.failures: dict[TopicPartition, ReadFailure] = {}
        self.arrived: list[TopicPartition] = []
        """Partitions that got batches since the caller last cleared it."""
        self._cluster = cluster
        self._isolation = isolation
        self._topic_ids = topic_ids
        self._memory = memory_bytes
        self._position = {place: start for place, (start, _) in ranges.items()}
        self._end = {place: end for place, (_, end) in ranges.items()}
        self._aborted = {place: AbortedTransactions() for place in ranges}
        self._needs: dict[TopicPartition, int] = {}
        self._buffered = 0
        self._asked = 0
        self._generation = 0
        self._error: FerryError | None = None
        self._news: Future | None = None
        self._room: list[Future] = []

    async def start(self) -> None:
        """Begin to read; to be called once."""
        await self._cluster.refresh({place.topic for place in self._position})
        self._spread()

    def close(self) -> None:
        """Stop reading; answers still on their way are dropped."""
        self._generation += 1
        self._wake_feeders()

    def take(self, place: TopicPartition) -> tuple[Batch, bool]:
        """The next batch of a partition, and whether its records stay behind (marker, aborted or empty)."""
        batch, hidden = self.queues[place].popleft()
        self._buffered -= len(batch.data)
        if self._room and self._buffered * 2 < self._memory:
            self._wake_feeders()
        return batch, hidden

    def exhausted(self) -> bool:
        """Whether every partition is finished or failed and its queue taken empty."""
        settled = len(self.finished) + len(self.failures) == len(self.queues)
        return settled and not any(self.queues.values())

    async def news(self, timeout_s: float) -> None:
        """Wait until batches arrive, a partition ends or the time is over; raises what stopped the reading."""
        if self._error is None and not self.arrived:
            self._news = waiting = Future()
            timer = self._cluster.loop.call_later(timeout_s, lambda: _resolve(waiting))
            await waiting
            self._cluster.loop.cancel(timer)
        if self._error is not None:
            raise self._error

    def _spread(self) -> None:
        """Start feeders for what is left, by today's leaders."""
        self._generation += 1
        by_leader: dict[int, list[TopicPartition]] = {}
        for place in self._position:
            if place in self.finished or place in self.failures:
                continue
            info = self._cluster.topics.get(place.topic)
            if info is None or place.partition not in info.partitions:
                self._fail(
                    place, RefusalKind.TOPIC_GONE, f"topic {place.topic} is gone from cluster {self._cluster.alias}"
                )
                continue
            planned = self._topic_ids.get(place.topic, "")
            if planned and info.id_hex and planned != info.id_hex:
                self._fail(
                    place,
                    RefusalKind.TOPIC_RECREATED,
                    f"topic {place.topic} on cluster {self._cluster.alias} was created again after the plan",
                )
                continue
            by_leader.setdefault(info.partitions[place.partition].leader, []).append(place)
        if -1 in by_leader:
            self._stop(Retryable(f"{by_leader[-1][0]} on cluster {self._cluster.alias} has no leader at the moment"))
            return
        groups = [
            (leader, places[index::FEEDERS_PER_LEADER])
            for leader, places in by_leader.items()
            for index in range(min(FEEDERS_PER_LEADER, len(places)))
        ]
        fetch_bytes = max(_MIN_FETCH_BYTES, self._memory // (2 * max(1, len(groups))))
        for leader, places in groups:
            self._cluster.loop.call_soon(lambda leader=leader, places=places: self._feed(leader, places, fetch_bytes))
        self._tell()

    async def _feed(self, leader: int, places: list[TopicPartition], fetch_bytes: int) -> None:
        generation = self._generation
        try:
            while places and generation == self._generation:
                if self._buffered + self._asked + fetch_bytes > self._memory and self._buffered:
                    room = Future()
                    self._room.append(room)
                    await room
                    continue
                offsets = {place: self._position[place] for place in places}
                self._asked += fetch_bytes
                try:
                    answer = await self._cluster.ask(self._request(offsets, fetch_bytes), leader)
                finally:
                    self._asked -= fetch_bytes
                if generation != self._generation:
                    return
                self._take_in(offsets, answer)
                places = [place for place in places if place not in self.finished and place not in self.failures]
                places = places[1:] + places[:1]  # a broker fills its answer from the front
        except _LeaderMoved:
            await self._follow_leaders(generation)
        except FerryError as error:
            if generation == self._generation:
                self._stop(error)

    async def _follow_leaders(self, generation: int) -> None:
        try:
            await self._cluster.loop.sleep(0.05)
            await self._cluster.refresh({place.topic for place in self._position})
        except FerryError as error:
            self._stop(error)
            return
        if generation == self._generation:
            self._spread()

    def _request(self, offsets: Mapping[TopicPartition, int], fetch_bytes: int) -> Any:
        needed = max((self._needs.get(place, 0) for place in offsets), default=0)
        return fetch_request(
            self._cluster,
            offsets,
            isolation=self._isolation,
            max_bytes=max(fetch_bytes, needed),
            partition_bytes=max(_MIN_PARTITION_BYTES, fetch_bytes // len(offsets), needed),
            max_wait_ms=_MAX_WAIT_MS,
        )

    def _take_in(self, offsets: Mapping[TopicPartition, int], answer: Any) -> None:
        if answer.error_code:
            raise Retryable(f"fetch from cluster {self._cluster.alias}: {codes.describe(answer.error_code)}")
        parts = list(fetched(self._cluster, offsets, answer))
        empty_answer = not any(part.records for part in parts)
        for part in parts:
            if part.error_code:
                self._judge(part)
                continue
            self._enqueue(part)
            readable = part.last_stable_offset if self._isolation == READ_COMMITTED else part.high_watermark
            place = part.place
            if empty_answer and readable >= self._end[place] and place not in self.finished:
                self._finish(place, self._end[place])  # compaction left nothing in between
        self._tell()

    def _enqueue(self, part: FetchedPartition) -> None:
        place, end = part.place, self._end[part.place]
        aborted = self._aborted[place]
        aborted.learn(part.aborted)
        queue, position = self.queues[place], self._position[place]
        arrived = False
        for batch in batches(part.records):
            if batch.next_offset <= position:
                continue
            if batch.base_offset >= end:
                position = end
                break
            hidden = aborted.hides(batch) or batch.is_control or (batch.record_count == 0 and batch.magic == 2)
            queue.append((batch, hidden))
            self._buffered += len(batch.data)
            position = batch.next_offset
            arrived = True
            if position >= end:
                break
        if arrived:
            self.arrived.append(place)
            self._needs.pop(place, None)
        elif part.records and position < end:
            self._ask_for_more(place, part.records)
        self._position[place] = position
        if position >= end:
            self._finish(place, position)

    def _ask_for_more(self, place: TopicPartition, records: bytes | memoryview) -> None:
        """Not one whole batch came: fetch what its length says, if that can be true."""
        needed = whole_batch_bytes(records) or _MIN_PARTITION_BYTES
        if len(records) < needed <= _MAX_BATCH_BYTES:
            self._needs[place] = needed
            return
        self._fail(
            place,
            RefusalKind.CORRUPT,
            f"the batch at offset {self._position[place]} of {place} says that it has {needed} bytes: the source's "
            "copy is damaged; restore it from a replica, or skip it explicitly",
        )

    def _judge(self, part: FetchedPartition) -> None:
        place, code = part.place, part.error_code
        if code == codes.OFFSET_OUT_OF_RANGE:
            self._fail(
                place,
                RefusalKind.RETENTION_PASSED
                if part.log_start_offset > self._position[place]
                else RefusalKind.SOURCE_TRUNCATED,
                f"{place} on cluster {self._cluster.alias} no longer holds offset {self._position[place]} "
                f"(log start {part.log_start_offset}, end {part.high_watermark})",
            )
        elif code in codes.UNAUTHORIZED:
            self._fail(
                place,
                RefusalKind.NOT_AUTHORIZED,
                f"not allowed to read topic {place.topic} on cluster {self._cluster.alias}: grant READ and DESCRIBE",
            )
        elif code == codes.CORRUPT_MESSAGE:
            self._fail(place, RefusalKind.CORRUPT, f"cluster {self._cluster.alias} calls {place} corrupt")
        elif code in codes.LEADER_MOVED or code == codes.UNKNOWN_TOPIC_ID:
            raise _LeaderMoved
        else:
            raise Retryable(f"fetch of {place} from cluster {self._cluster.alias}: {codes.describe(code)}")

    def _finish(self, place: TopicPartition, at: int) -> None:
        self.finished[place] = at
        self.arrived.append(place)

    def _fail(self, place: TopicPartition, kind: RefusalKind, message: str) -> None:
        self.failures[place] = ReadFailure(kind=kind, message=message, offset=self._position[place])
        self.arrived.append(place)

    def _stop(self, error: FerryError) -> None:
        self._error = self._error or error
        self._generation += 1
        self._tell()

    def _tell(self) -> None:
        waiting, self._news = self._news, None
        if waiting is not None:
            _resolve(waiting)

    def _wake_feeders(self) -> None:
        waiting, self._room = self._room, []
        for future in waiting:
            _resolve(future)


class _LeaderMoved(Exception):
    """A partition is led by another broker now."""


def _resolve(future: Future) -> None:
    if not future.is_done:
        future.success(None)
