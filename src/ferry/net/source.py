"""Reads bounded ranges of many partitions ahead of the writer, within a fixed amount of memory.

Each leader is read by a few feeders, each with its own fetch under way, so that a distant source is asked for the
next pieces while earlier ones travel.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka.future import Future

from ferry.config.clients import ENGINE_CHOOSES, FetchOptions
from ferry.errors import Corrupt, FerryError, Retryable
from ferry.model import RefusalKind, TopicPartition
from ferry.net import codes
from ferry.net.cluster import Cluster
from ferry.net.fetch import (
    NO_NODE,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    FetchedPartition,
    fetch_request,
    fetched,
    record_bytes,
)
from ferry.net.offsets import EARLIEST_LOCAL, list_offsets
from ferry.net.throttle import Throttle
from ferry.wire.aborted import AbortedTransactions
from ferry.wire.batch import Batch, batches, check, whole_batch_bytes

log = logging.getLogger(__name__)

FEEDERS_PER_LEADER = 3
NO_LEADER = -1
_MIN_FETCH_BYTES = 1 << 20
_MIN_PARTITION_BYTES = 256 << 10
_MAX_BATCH_BYTES = 1 << 30
"""No broker takes a batch this large; a length beyond it is damage."""

_MAX_WAIT_MS = 500
_LEADER_PATIENCE_S = 30.0
_LEADER_PAUSE_S = 0.1


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
        options: FetchOptions = ENGINE_CHOOSES,
        throttle: Throttle | None = None,
    ) -> None:
        """`ranges` are `[start, end)` per partition; `topic_ids` (may be empty) must be the plan's."""
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
        self._options = options
        self._throttle = throttle
        self._nearer: dict[TopicPartition, int] = {}  # replicas that leaders named for our rack
        self._leader_only: set[TopicPartition] = set()  # whose nearer replica has failed
        self._position = {place: start for place, (start, _) in ranges.items()}
        self._end = {place: end for place, (_, end) in ranges.items()}
        self._aborted = {place: AbortedTransactions() for place in ranges}
        self._needs: dict[TopicPartition, int] = {}
        self._doubtful: set[TopicPartition] = set()
        self._held = 0  # bytes queued, or taken and not released yet
        self._asked = 0
        self._round = 0  # feeders of an earlier round end
        self._error: FerryError | None = None
        self._news: Future | None = None
        self._room: list[Future] = []

    async def start(self) -> None:
        """Begin to read; to be called once."""
        await self._cluster.refresh({place.topic for place in self._position})
        self._spread()

    def close(self) -> None:
        """Stop reading; answers still on their way are dropped."""
        self._round += 1
        self._wake_feeders()

    def take(self, place: TopicPartition) -> tuple[Batch, bool]:
        """The next batch of a partition, and whether its records stay behind (marker, aborted or empty).

        It counts against the memory until its bytes are released.
        """
        return self.queues[place].popleft()

    def release(self, size: int) -> None:
        """So many bytes that were taken are not needed any more."""
        self._held -= size
        self._let_in()

    def give_up(self, place: TopicPartition, failure: ReadFailure) -> None:
        """Read no further on a partition: the caller cannot use what comes next."""
        queue = self.queues[place]
        self.release(sum(len(batch.data) for batch, _ in queue))
        queue.clear()
        self.finished.pop(place, None)
        self._fail(place, failure)

    def wake(self) -> None:
        """Let whoever waits for news look again."""
        self._tell()

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
        self._round += 1
        by_leader: dict[int, list[TopicPartition]] = {}
        for place in self._position:
            if place in self.finished or place in self.failures:
                continue
            info = self._cluster.topics.get(place.topic)
            if info is None or place.partition not in info.partitions:
                self._fail_here(
                    place,
                    RefusalKind.TOPIC_GONE,
                    f"topic {place.topic} is gone from cluster {self._cluster.alias} since the plan: if that was "
                    "meant, leave it out of topics; then run again",
                )
                continue
            planned = self._topic_ids.get(place.topic, "")
            if planned and info.id_text and planned != info.id_text:
                self._fail_here(
                    place,
                    RefusalKind.TOPIC_RECREATED,
                    f"topic {place.topic} on cluster {self._cluster.alias} was created again since the plan: plan "
                    "again, and the plan says what can be done",
                )
                continue
            by_leader.setdefault(self._node(place, info.partitions[place.partition].leader), []).append(place)
        groups = [
            (leader, places[index::FEEDERS_PER_LEADER])
            for leader, places in by_leader.items()
            for index in range(min(FEEDERS_PER_LEADER, len(places)))
        ]
        fetch_bytes = max(_MIN_FETCH_BYTES, self._memory // (2 * max(1, len(groups))))
        for leader, places in groups:
            feed = partial(self._feed, self._round, leader, places, fetch_bytes)
            self._cluster.loop.call_soon(feed)
        self._tell()

    async def _feed(self, started: int, leader: int, places: list[TopicPartition], fetch_bytes: int) -> None:
        """Fetch from one leader until its partitions are at their end, fail, or have another leader.

        While the leader is missing or does not answer, the others' feeders go on.
        """
        until = math.inf
        while places and started == self._round:
            try:
                await self._fetch(leader, places, fetch_bytes)
                until = math.inf
            except Retryable as error:
                until = min(until, time.monotonic() + min(_LEADER_PATIENCE_S, self._cluster.patience_s))
                trouble = error if isinstance(error, _NotServed) else _NotServed(places, str(error))
                await self._look_for_leader(leader, trouble, started, time.monotonic() > until)
            except Exception as error:  # the loop would only log it, and the pump wait for ever
                if started == self._round:
                    log.debug("a feeder of cluster %s stops", self._cluster.alias, exc_info=True)
                    self._stop(error if isinstance(error, FerryError) else Retryable(f"reading failed: {error!r}"))
            places = [place for place in places if place not in self.finished and place not in self.failures]
            places = places[1:] + places[:1]  # a broker fills its answer from the front

    async def _fetch(self, leader: int, places: list[TopicPartition], fetch_bytes: int) -> None:
        """One fetch, as soon as there is room for its answer. Retryable when the leader cannot serve it now."""
        started = self._round
        if leader == NO_LEADER:
            raise Retryable("it has no leader")
        # A batch may be larger than all the memory: one fetch at a time is always allowed.
        most = fetch_bytes if self._throttle is None else self._throttle.portion(fetch_bytes)
        size = max(most, *(self._needs.get(place, 0) for place in places))
        while self._held + self._asked + size > self._memory and self._held + self._asked:
            room = Future()
            self._room.append(room)
            await room
            if started != self._round:
                return
        offsets = {place: self._position[place] for place in places}
        self._asked += size
        try:
            answer = await self._ask(leader, offsets, size, started)
        finally:
            self._asked -= size
            self._let_in()
        if started == self._round:
            self._take_in(offsets, answer)
            await self._settle_doubts(started)

    async def _ask(self, leader: int, offsets: Mapping[TopicPartition, int], size: int, started: int) -> Any:
        """The answer to a fetch of about `size` bytes, once the throttle admits it; None when the round is over."""
        if self._throttle is None:
            return await self._cluster.ask(self._request(offsets, size), leader)
        admitted = await self._throttle.admit(size, lambda: started == self._round)
        came = 0
        try:
            if not admitted:
                return None
            answer = await self._cluster.ask(self._request(offsets, admitted), leader)
            came = record_bytes(answer)
            return answer
        finally:
            self._throttle.settle(admitted, came)

    async def _settle_doubts(self, started: int) -> None:
        """Nothing came where something should lie: compaction left nothing up to the end of the range, or the records
        lie in tiered storage and the broker waits for them, which it does not say (KIP-405). Its own log's start tells.
        """
        doubtful, self._doubtful = self._doubtful, set()
        if not doubtful:
            return
        local = await list_offsets(self._cluster, dict.fromkeys(doubtful, EARLIEST_LOCAL), isolation=READ_UNCOMMITTED)
        if started != self._round:
            return
        remote = [place for place in doubtful if local.get(place, math.inf) > self._position[place]]
        for place in doubtful.difference(remote):
            self._finish(place, self._end[place])
        self._tell()
        if remote:
            raise _NotServed(remote, f"offset {self._position[remote[0]]} lies in tiered storage and does not come")

    async def _look_for_leader(self, leader: int, trouble: _NotServed, started: int, give_up: bool) -> None:
        """Ask the metadata again, and spread anew when it says something else; fail the partitions when giving up."""
        places = [place for place in trouble.places if place not in self.failures]
        self._leader_only |= {place for place in places if self._nearer.pop(place, None) is not None}
        try:
            await self._cluster.loop.sleep(_LEADER_PAUSE_S)
            await self._cluster.refresh({place.topic for place in places})
        except FerryError as error:
            self._stop(error)
            return
        if started != self._round:
            return
        if any(self._moved(place, leader) for place in places):
            self._spread()
        elif give_up:
            for place in places:
                self._fail_here(
                    place,
                    RefusalKind.NO_LEADER,
                    f"the leader of {place} on cluster {self._cluster.alias} does not serve it ({trouble}): look at "
                    f"{'its brokers' if leader == NO_LEADER else f'broker {leader}'}, then run again",
                )
            self._tell()

    def _moved(self, place: TopicPartition, leader: int) -> bool:
        info = self._cluster.topics.get(place.topic)
        partition = info.partitions.get(place.partition) if info is not None else None
        if info is None or partition is None:
            return True
        planned = self._topic_ids.get(place.topic, "")
        return self._node(place, partition.leader) != leader or bool(planned and info.id_text != planned)

    def _node(self, place: TopicPartition, leader: int) -> int:
        """Who is asked for a partition: its leader, or the replica that the leader named."""
        return leader if leader == NO_LEADER else self._nearer.get(place, leader)

    def _request(self, offsets: Mapping[TopicPartition, int], size: int) -> Any:
        needed = max(self._needs.get(place, 0) for place in offsets)
        return fetch_request(
            self._cluster,
            offsets,
            isolation=self._isolation,
            max_bytes=max(needed, min(size, self._options.max_bytes or size)),
            partition_bytes=max(
                needed, self._options.partition_max_bytes or max(_MIN_PARTITION_BYTES, size // len(offsets))
            ),
            max_wait_ms=_MAX_WAIT_MS if self._options.max_wait_ms is None else self._options.max_wait_ms,
            min_bytes=1 if self._options.min_bytes is None else self._options.min_bytes,
            # The leader answers itself when no rack is named, but only for all partitions of a request.
            rack="" if self._leader_only.intersection(offsets) else self._options.rack,
        )

    def _take_in(self, offsets: Mapping[TopicPartition, int], answer: Any) -> None:
        if answer.error_code:
            raise Retryable(f"fetch from cluster {self._cluster.alias}: {codes.describe(answer.error_code)}")
        parts = list(fetched(self._cluster, offsets, answer))
        passing: dict[TopicPartition, int] = {}
        nearer = {part.place: part.nearer_replica for part in parts if part.nearer_replica != NO_NODE}
        wanted = {place: node for place, node in nearer.items() if place not in self._leader_only}
        empty_answer = not any(part.records for part in parts)
        for part in parts:
            if part.place in self.failures:  # given up while the answer was on its way
                continue
            if part.place in nearer:  # that is all the answer says: its lack of records means nothing
                continue
            if part.error_code:
                if not self._is_final(part):
                    passing[part.place] = part.error_code
                continue
            self._enqueue(part)
            readable = part.last_stable_offset if self._isolation == READ_COMMITTED else part.high_watermark
            place = part.place
            if empty_answer and readable >= self._end[place] and place not in self.finished:
                self._doubtful.add(place)
        self._tell()
        if wanted.items() - self._nearer.items():
            self._nearer |= wanted
            self._spread()
        if passing:
            raise _NotServed(list(passing), codes.describe(next(iter(passing.values()))))

    def _enqueue(self, part: FetchedPartition) -> None:
        place, end = part.place, self._end[part.place]
        aborted = self._aborted[place]
        aborted.learn(part.aborted)
        queue, position = self.queues[place], self._position[place]
        arrived = False
        for batch in batches(part.records):
            try:  # before anything in its header is believed
                check(batch, place.topic, place.partition)
            except Corrupt as error:
                self._position[place] = position
                self._fail_here(place, RefusalKind.CORRUPT, str(error))
                return
            if batch.next_offset <= position:
                continue
            if batch.base_offset >= end:
                position = end
                break
            hidden = aborted.hides(batch) or batch.is_control or (batch.record_count == 0 and batch.magic == 2)
            queue.append((batch, hidden))
            self._held += len(batch.data)
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
        self._fail_here(
            place,
            RefusalKind.CORRUPT,
            f"the batch at offset {self._position[place]} of {place} says that it has {needed} bytes: the source's "
            "copy is damaged; restore it from a replica, or skip it explicitly",
        )

    def _is_final(self, part: FetchedPartition) -> bool:
        """Whether the error of a partition will stay; then the partition has failed."""
        place, code = part.place, part.error_code
        if place in self._nearer:  # a follower may lag behind its leader: that one decides
            return False
        if code == codes.OFFSET_OUT_OF_RANGE:
            self._fail_here(
                place,
                RefusalKind.RETENTION_PASSED
                if part.log_start_offset > self._position[place]
                else RefusalKind.SOURCE_TRUNCATED,
                f"{place} on cluster {self._cluster.alias} no longer holds offset {self._position[place]} (log start "
                f"{part.log_start_offset}, end {part.high_watermark}): plan again, and the plan says what is lost",
            )
        elif code in codes.UNAUTHORIZED:
            self._fail_here(
                place,
                RefusalKind.NOT_AUTHORIZED,
                f"not allowed to read topic {place.topic} on cluster {self._cluster.alias}: grant READ and DESCRIBE",
            )
        elif code == codes.CORRUPT_MESSAGE:
            self._fail_here(
                place,
                RefusalKind.CORRUPT,
                f"cluster {self._cluster.alias} calls {place} corrupt at offset {self._position[place]}: restore the "
                "partition from another replica, then run again",
            )
        else:
            return False
        return True

    def _finish(self, place: TopicPartition, at: int) -> None:
        self.finished[place] = at
        self.arrived.append(place)

    def _fail(self, place: TopicPartition, failure: ReadFailure) -> None:
        self.failures[place] = failure
        self.arrived.append(place)

    def _fail_here(self, place: TopicPartition, kind: RefusalKind, message: str) -> None:
        self._fail(place, ReadFailure(kind=kind, message=message, offset=self._position[place]))

    def _stop(self, error: FerryError) -> None:
        self._error = self._error or error
        self._round += 1
        self._tell()

    def _tell(self) -> None:
        waiting, self._news = self._news, None
        if waiting is not None:
            _resolve(waiting)

    def _let_in(self) -> None:
        """Wake the feeders that wait for room when there is some, or when nothing else could make any."""
        if self._room and (self._held * 2 < self._memory or not self._held + self._asked):
            self._wake_feeders()

    def _wake_feeders(self) -> None:
        waiting, self._room = self._room, []
        for future in waiting:
            _resolve(future)


class _NotServed(Retryable):
    """A broker does not serve these partitions, now."""

    def __init__(self, places: list[TopicPartition], why: str) -> None:
        super().__init__(why)
        self.places = places


def _resolve(future: Future) -> None:
    if not future.is_done:
        future.success(None)
