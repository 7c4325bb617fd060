"""One broker's fetcher reads some partitions, one request at a time, until they end, fail or have another leader."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafka.protocol.consumer import FetchRequest

from ferry.config.client_options import FetchOptions
from ferry.errors import FerryError, Retryable, Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.epoch_check import Lineage
from ferry.kafka.fetch.fetch_buffer import MIN_PARTITION_BYTES, Answer, FetchBuffer
from ferry.kafka.fetch.offsets import EARLIEST_LOCAL, listed_offsets, log_edges
from ferry.kafka.fetch.out_of_range import lost_range
from ferry.kafka.fetch.patience import Patience
from ferry.kafka.fetch.requests import (
    NO_NODE,
    READ_UNCOMMITTED,
    FetchedPartition,
    fetch_request,
    fetched,
    record_bytes,
)
from ferry.kafka.fetch.routes import NO_LEADER, Routes
from ferry.kafka.fetch.throttle import Throttle
from ferry.messages.catalogue import sentence
from ferry.model import RefusalKind, TopicPartition

log = logging.getLogger(__name__)

_MAX_WAIT_MS = 500
PAUSE_S = 0.1


class BrokerFetcher:
    """Partitions of one broker, and the request that is under way for them. Many fetchers share one buffer."""

    def __init__(
        self,
        cluster: Cluster,
        buffer: FetchBuffer,
        routes: Routes,
        lineage: Lineage,
        patience: Patience,
        node: int,
        *,
        isolation: int,
        options: FetchOptions,
        throttle: Throttle | None,
        fetch_bytes: Callable[[], int],
        hand_over: Callable[[Iterable[TopicPartition]], None],
    ) -> None:
        """`fetch_bytes` returns how much to ask for now.

        `hand_over` receives the partitions that another broker serves now.
        """
        self.node = node
        self.places: dict[TopicPartition, None] = {}
        """The partitions, in the order in which they are asked for; only this fetcher reads them."""
        self.ended = False
        self._cluster = cluster
        self._buffer = buffer
        self._routes = routes
        self._lineage = lineage
        self._patience = patience
        self._isolation = isolation
        self._options = options
        self._throttle = throttle
        self._fetch_bytes = fetch_bytes
        self._hand_over = hand_over

    @property
    def is_at_work(self) -> bool:
        """Whether this fetcher has partitions to read, and has not ended."""
        return bool(self.places) and not self.ended

    async def run(self) -> None:
        """Fetch until no partition is left. While the broker does not answer, the fetchers of others continue."""
        try:
            while self._has_work():
                try:
                    await self._fetch()
                except Retryable as error:
                    await self._look_for_leader(
                        error if isinstance(error, NotServed) else NotServed(self.places, str(error))
                    )
                self._turn()
        except Exception as error:  # the loop would only log it, and the writer would wait for ever
            log.debug("a feeder of cluster %s stops", self._cluster.alias, exc_info=True)
            self._buffer.stop(error if isinstance(error, FerryError) else Retryable(f"reading failed: {error!r}"))
        finally:
            self.ended = True

    def _turn(self) -> None:
        """Leave out the partitions that are done, and move the first one to the end.

        A broker fills its answer from the front.
        """
        places = [place for place in self.places if self._buffer.wanted(place)]
        self.places = dict.fromkeys(places[1:] + places[:1])

    async def _fetch(self) -> None:
        """Run one fetch, as soon as there is room for its answer.

        Raises Retryable when the broker cannot serve it now.
        """
        self._leave_lost()
        if self.node == NO_LEADER:
            raise Retryable("it has no leader")
        unanswered = await self._look_at_logs()
        if any(self._lineage.is_sound(place) for place in self.places):
            await self._fetch_sound()
        if unanswered:
            raise NotServed(unanswered, "it is not known where its last leader epochs end")

    async def _look_at_logs(self) -> frozenset[TopicPartition]:
        """Fail the partitions whose logs were cut below what was read of them (KIP-320).

        Returns the partitions for which no leader answered.
        """
        looked = await self._lineage.look(self.places)
        if looked.cut:  # the request names the topic, not its id: the answer may be about another topic
            await self._look_for_lost(looked.cut)
        for place, at in looked.cut.items():
            if place not in self.places or not self._buffer.wanted(place):
                continue
            epoch, end = self._buffer.marks[place]
            self._buffer.fail(
                place,
                RefusalKind.SOURCE_TRUNCATED,
                sentence("source.truncated.read", end=end, cut=at, epoch=epoch, **self._at(place)),
            )
        if looked.cut:
            self._buffer.wake()
        return looked.unanswered

    async def _fetch_sound(self) -> None:
        most = self._fetch_bytes()
        if self._throttle is not None:
            most = self._throttle.portion(most)
        size = max(most, self._buffer.needed(self.places))
        began = time.monotonic()
        await self._buffer.reserve(size, self.places)
        try:
            if self._throttle is None:
                answered = await self._ask(size, began)
            else:
                answered = await self._ask_when_admitted(self._throttle, size, began)
        finally:
            self._buffer.unreserve(size)
        if answered is not None and not self._buffer.closed:
            await self._take_in(*answered)

    def _has_work(self) -> bool:
        return bool(self.places) and not self._buffer.closed

    async def _ask(self, size: int, began: float) -> tuple[FetchRequest, Any] | None:
        """Fetch about `size` bytes, wanted since `began`.

        Return the request and its answer, or None with nothing to do.
        """
        self._leave_lost()
        if not self._has_work():
            return None
        places = [place for place in self._buffer.hungry(self.places) if self._lineage.is_sound(place)]
        if not places:
            return None
        self._patience.rest(places, time.monotonic() - began)
        offsets = {place: self._buffer.positions[place] for place in places}
        request = self._request(offsets, size)
        return request, await self._cluster.ask(request, self.node)

    async def _ask_when_admitted(self, throttle: Throttle, size: int, began: float) -> tuple[FetchRequest, Any] | None:
        """Fetch as much of `size` bytes as the throttle admits, wanted since `began`.

        Return the request and its answer. None when there is nothing to do.
        """
        admitted = await throttle.admit(size, self._has_work)
        came = 0
        try:
            answered = await self._ask(admitted, began) if admitted else None
            if answered is not None:
                came = record_bytes(answered[1])
            return answered
        finally:
            throttle.settle(admitted, came)

    def _request(self, offsets: Mapping[TopicPartition, int], size: int) -> FetchRequest:
        needed = self._buffer.needed(offsets)
        return fetch_request(
            self._cluster,
            offsets,
            topic_ids=self._routes.ids(offsets),
            leader_epochs={place: self._lineage.epoch(place) for place in offsets},
            isolation=self._isolation,
            max_bytes=max(needed, min(size, self._options.max_bytes or size)),
            partition_bytes=max(
                needed, self._options.partition_max_bytes or max(MIN_PARTITION_BYTES, size // len(offsets))
            ),
            max_wait_ms=_MAX_WAIT_MS if self._options.max_wait_ms is None else self._options.max_wait_ms,
            min_bytes=1 if self._options.min_bytes is None else self._options.min_bytes,
            # The leader answers itself when no rack is named, but only for all partitions of a request.
            rack="" if self._routes.need_leader(offsets) else self._options.rack,
        )

    async def _take_in(self, request: FetchRequest, answer: Any) -> None:
        """Put what came into the buffer, and raise NotServed for partitions that the broker does not serve."""
        if answer.error_code:
            raise Retryable(f"fetch from cluster {self._cluster.alias}: {codes.describe(answer.error_code)}")
        parts = list(fetched(request, answer))
        await self._look_at_names(request, answer, parts)
        memory = Answer(record_bytes(answer))
        nothing_came = not any(part.records for part in parts)
        first = _first(request)
        named: dict[TopicPartition, int] = {}
        trouble: dict[TopicPartition, str] = {}
        doubtful: set[TopicPartition] = set()
        outside: set[TopicPartition] = set()
        now = time.monotonic()
        for part in parts:
            place = part.place
            # Moved to another fetcher, or failed, while the answer was on its way.
            if place not in self.places or not self._buffer.wanted(place):
                continue
            if part.nearer_replica != NO_NODE:  # the answer says only that: its lack of records means nothing
                named[place] = part.nearer_replica
            elif part.error_code:
                if (why := self._passing(part, outside)) is not None:
                    trouble[place] = why
            elif part.records:
                self._patience.served(place)
                self._buffer.put(part, memory)
            elif not nothing_came and place != first:  # the others may have filled the answer
                self._patience.answered(place)
            elif part.readable(self._isolation) >= self._buffer.ends[place]:
                doubtful.add(place)
            else:
                self._patience.begin([place], now, silent=True)
                if self._patience.is_over(place, now):
                    trouble[place] = (
                        f"it shows offsets up to {part.readable(self._isolation)}, {self._buffer.ends[place]} is due"
                    )
        self._buffer.wake()
        self._move(self._routes.prefer(named))
        trouble |= await self._settle(doubtful)
        trouble |= await self._look_outside(outside)
        if trouble:
            raise NotServed(trouble, next(iter(trouble.values())))

    async def _settle(self, doubtful: set[TopicPartition]) -> dict[TopicPartition, str]:
        """Decide about partitions without records where some should be.

        Return those that are not at their end, and why. Either compaction left nothing up to the end of the range. Or
        the records are in tiered storage, and the broker waits for them without reporting it (KIP-405). The start of
        its local log shows which.
        """
        if not doubtful:
            return {}
        starts = dict.fromkeys(doubtful, EARLIEST_LOCAL)
        try:
            listed = await listed_offsets(self._cluster, starts, isolation=READ_UNCOMMITTED)
        except Unreachable as error:  # this broker does not answer; others may
            return dict.fromkeys(doubtful, str(error))
        self._leave_lost()  # it was asked by the names, and has refreshed the metadata
        doubtful = {place for place in doubtful if place in self.places and self._buffer.wanted(place)}
        trouble: dict[TopicPartition, str] = {}
        for place in doubtful:
            position = self._buffer.positions[place]
            if place in listed.failed:
                trouble[place] = listed.failed[place].why
            elif listed.found.get(place, math.inf) > position:
                trouble[place] = f"offset {position} is in tiered storage and was not returned"
            else:
                self._buffer.finish_empty(place, self._lineage.epoch(place))
        self._buffer.wake()
        self._patience.begin(trouble, time.monotonic(), silent=True)
        return trouble

    async def _look_outside(self, places: set[TopicPartition]) -> dict[TopicPartition, str]:
        """Ask for the edges of logs whose leader reports an offset out of range, and fail what is lost.

        The answer of a fetch says no more than that. Returns the partitions whose logs have the offsets after all, or
        of which no broker reports the edges, with the reason.
        """
        if not places:
            return {}
        try:
            begins, ends = await log_edges(self._cluster, places)
        except Unreachable as error:
            return dict.fromkeys(places, str(error))
        self._leave_lost()  # they were asked by the names, after a refresh of the metadata
        failed = begins.failed | ends.failed
        trouble: dict[TopicPartition, str] = {}
        for place in places:
            if place not in self.places or not self._buffer.wanted(place):
                continue
            if place not in ends.found:
                trouble[place] = (
                    failed[place].why if place in failed else ("it is not known where its log begins and ends")
                )
                continue
            wanted = self._buffer.positions[place], self._buffer.ends[place]
            edges = begins.found[place], ends.found[place]
            lost = lost_range(place, self._cluster.alias, wanted, edges)
            if lost is not None:
                self._buffer.fail(place, *lost)
            else:
                trouble[place] = f"offset {wanted[0]} is out of range, though its log has {edges[0]} to {edges[1] - 1}"
        self._buffer.wake()
        return trouble

    async def _look_for_leader(self, trouble: NotServed) -> None:
        """Ask for the metadata again; move what has another leader, and fail what was not served for too long."""
        self._patience.begin(trouble.places, time.monotonic())
        self._routes.back_to_leader(trouble.places)
        await self._cluster.loop.sleep(PAUSE_S)
        await self._cluster.refresh({place.topic for place in trouble.places})
        if self._buffer.closed:
            return
        places = [place for place in trouble.places if place in self.places and self._buffer.wanted(place)]
        moved = [place for place in places if self._routes.moved(place, self.node)]
        now = time.monotonic()
        brokers = "its brokers" if self.node == NO_LEADER else f"broker {self.node}"
        for place in places:
            if place not in moved and self._patience.is_over(place, now):
                self._buffer.fail(
                    place,
                    RefusalKind.NO_LEADER,
                    sentence("source.not-served", why=str(trouble), brokers=brokers, **self._at(place)),
                )
        self._move(moved)
        self._buffer.wake()

    async def _look_at_names(self, request: FetchRequest, answer: Any, parts: Iterable[FetchedPartition]) -> None:
        """Leave out what an answer may have of other topics: brokers 2.8 to 3.0 know ids, but fetch by names."""
        by_name = any(topic.topic for topic in answer.responses)
        if by_name and any(topic.topic_id for topic in request.topics):
            await self._look_for_lost(part.place for part in parts)

    async def _look_for_lost(self, places: Iterable[TopicPartition]) -> None:
        """Leave out the partitions that do not belong to the plan's topic any more, by the metadata of now."""
        await self._cluster.refresh({place.topic for place in places})
        self._leave_lost()

    def _leave_lost(self) -> None:
        """Leave out what does not belong to the plan's topic any more; `hand_over` lets it fail."""
        self._move([place for place in self.places if self._buffer.wanted(place) and self._routes.lost(place)])

    def _at(self, place: TopicPartition) -> dict[str, str]:
        """Return the facts that name a partition in a sentence."""
        return {"source": str(place), "cluster": self._cluster.alias}

    def _move(self, places: list[TopicPartition]) -> None:
        for place in places:
            del self.places[place]
        if places:
            self._hand_over(places)

    def _passing(self, part: FetchedPartition, outside: set[TopicPartition]) -> str | None:
        """Return what is wrong now with a partition that was answered with an error.

        None where it has failed for good, and where its leader reports the offset out of range: then it is added to
        `outside`.
        """
        place, code, position = part.place, part.error_code, self._buffer.positions[part.place]
        if self._routes.is_nearer(place):  # a follower may lag: its leader decides
            return codes.describe(code)
        if code == codes.OFFSET_OUT_OF_RANGE:
            outside.add(place)
        elif code in codes.UNAUTHORIZED:
            self._buffer.fail(
                place,
                RefusalKind.NOT_AUTHORIZED,
                sentence("source.not-authorized", topic=place.topic, cluster=self._cluster.alias),
            )
        elif code == codes.CORRUPT_MESSAGE:
            self._buffer.fail(
                place,
                RefusalKind.CORRUPT,
                sentence("source.corrupt", at=position, **self._at(place)),
            )
        else:
            return codes.describe(code)
        return None


def _first(request: FetchRequest) -> TopicPartition:
    """Return the partition from which a broker fills its answer."""
    topic = request.topics[0]
    return TopicPartition(topic=topic.topic, partition=topic.partitions[0].partition)


class NotServed(Retryable):
    """A broker does not serve these partitions now."""

    def __init__(self, places: Iterable[TopicPartition], why: str) -> None:
        super().__init__(why)
        self.places = list(places)
