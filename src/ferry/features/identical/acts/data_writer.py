"""The writer of records with identical offsets: idempotent, in no transaction, under the lane's producer id."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from kafka.future import Future

from ferry.clock import boot_ms, wall_ms
from ferry.copy.prepared_batch import PreparedBatch
from ferry.errors import FerryError, Retryable
from ferry.features.identical.acts.markers import Markers, codes_of, markers_request
from ferry.features.identical.rules.marked import usable_until
from ferry.features.identical.rules.planned import LEASE_MS
from ferry.features.identical.rules.stamped import is_outdated
from ferry.kafka.connect.cluster import Cluster, TooOld
from ferry.kafka.produce.writer import Writer
from ferry.model import TopicPartition
from ferry.wire.batch import Batch, restamped, stamp_of

_EPOCH = 0


class Lease:
    """How long a writer may begin requests: until LEASE_MS after it asked the ledger for a newer run and found none."""

    def __init__(self, look: Callable[[], Awaitable[None]], now: Callable[[], int] = boot_ms) -> None:
        """`look` reads the ledger, and raises Superseded if there is a newer run or attempt."""
        self._look = look
        self._now = now
        self._asked: int | None = None

    async def confirm(self) -> None:
        """Read the ledger. Raises Superseded."""
        asked = self._now()
        await self._look()
        self._asked = asked

    async def keep(self) -> None:
        """Read the ledger if more than half of the lease is over. Raises Superseded."""
        if self._asked is None or self._now() >= self._asked + LEASE_MS // 2:
            await self.confirm()

    def check(self) -> None:
        """Raise Retryable if the lease is over: a process that slept must read the ledger before it writes."""
        if self._asked is None or self._now() >= self._asked + LEASE_MS:
            raise Retryable("the time to write is over since the ledger was read: it is read again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Where a target partition ends: it was asked for `at` (boot time, ms), and broker `node` answered."""

    end: int
    at: int
    node: int


Again = Callable[[Mapping[TopicPartition, Reading]], Awaitable[Mapping[TopicPartition, Reading]]]
"""Reads ends again. Raises Retryable if one is another than before."""


class Readings:
    """What is known of the ends of a slot's target partitions. Nothing is sent by what is older than a lease."""

    def __init__(self, again: Again, now: Callable[[], int] = boot_ms) -> None:
        self._again = again
        self._now = now
        self._of: dict[TopicPartition, Reading] = {}

    def note(self, readings: Mapping[TopicPartition, Reading]) -> None:
        """Take what was read."""
        self._of |= readings

    def sent(self, node: int, places: Iterable[TopicPartition]) -> dict[TopicPartition, Reading]:
        """Return the readings that answers to a request of this moment make, with the ends as before."""
        at = self._now()
        return {place: Reading(end=self._of[place].end, at=at, node=node) for place in places}

    async def confirm(self, places: Iterable[TopicPartition]) -> None:
        """Read the ends of partitions again. Raises Retryable if one is another than it is known to be."""
        self.note(await self._again({place: self._of[place] for place in places}))

    async def keep(self, places: Iterable[TopicPartition]) -> None:
        """Read again what is older than half a lease. Raises Retryable if an end is another one now."""
        now = self._now()
        old = {
            place: one
            for place in places
            if (one := self._of.get(place)) is not None and is_outdated(one.at, now, LEASE_MS // 2)
        }
        if old:
            self.note(await self._again(old))

    def check(self, node: int, places: Iterable[TopicPartition]) -> None:
        """Raise Retryable unless `node` itself has answered, within the lease, where each partition ends."""
        now = self._now()
        for place in places:
            one = self._of.get(place)
            if one is None or one.node != node or is_outdated(one.at, now, LEASE_MS):
                raise Retryable(f"the end of {place} is not known at its leader {node}: it is read again")


class Sendings:
    """The target partitions of a slot to which a batch may have been sent: the ledger says so before the first one."""

    def __init__(self, note: Callable[[Collection[TopicPartition]], Awaitable[None]], lease: Lease) -> None:
        """`note` writes to the ledger that batches are about to be sent to these partitions."""
        self._note = note
        self._lease = lease
        self._noted: set[TopicPartition] = set()

    def known(self, places: Iterable[TopicPartition]) -> None:
        """Take the partitions of which the ledger says so already."""
        self._noted.update(places)

    async def begin(self, places: Iterable[TopicPartition]) -> None:
        """Write to the ledger which partitions get their first batch now. Raises Superseded.

        The ledger is read after that. A newer run is seen then, or it sees what was written, and it does not write to
        these partitions in transactions.
        """
        new = {place for place in places if place not in self._noted}
        if new:
            await self._note(new)
            await self._lease.confirm()
            self._noted |= new


class Unanswered(Exception):
    """Markers were sent to `places`, and there is no answer: they may arrive, now or later."""

    def __init__(self, places: Iterable[TopicPartition]) -> None:
        self.places = tuple(sorted(places))
        super().__init__(f"no answer to markers for {', '.join(map(str, self.places))}")


class DataWriter(Writer):
    """A producer id for each partition, with epoch 0. All are the lane's.

    A record's sequence number is its offset, until a marker is before it in the log: then it counts the records.
    """

    def __init__(
        self,
        cluster: Cluster,
        producers: Mapping[TopicPartition, int],
        lease: Lease,
        readings: Readings,
        sendings: Sendings,
        markers: Markers,
        timeout_ms: int,
    ) -> None:
        """`timeout_ms` bounds how long a first request is repeated."""
        super().__init__(cluster, "records with identical offsets", timeout_ms)
        self._sendings = sendings
        self.markers = markers
        self.producers = producers
        self.readings = readings
        self.until_ms = 0
        """When the next request becomes too old to be sent (wall clock): producer state could expire early then."""
        self._lease = lease
        self._under_way: dict[TopicPartition, Reading] = {}
        self._states: dict[TopicPartition, int] = {}

    def appended(self, place: TopicPartition, out: PreparedBatch) -> None:
        """Take the answer to the batch under way: the partition ended after it when it was appended."""
        self._ended(place, out.end)
        self._states[place] = out.batch.max_timestamp
        self.markers.appended(place)

    def _ended(self, place: TopicPartition, end: int) -> None:
        self.readings.note({place: replace(self._under_way[place], end=end)})

    def begin(self, numbers: Mapping[TopicPartition, int], states: Mapping[TopicPartition, int]) -> None:
        """Take the sequence numbers of the next records, and the last timestamps of the states that want them."""
        self._sequences |= numbers
        self._states |= states

    def usable_until(self, place: TopicPartition, out: PreparedBatch, data: memoryview, max_age_ms: int) -> int | None:
        """Return until when the sequence number of a stamped batch may be used (wall clock, ms); None: at any time."""
        return usable_until(out.start, stamp_of(data)[2], self._states.get(place, 0), max_age_ms)

    def stamped(self, place: TopicPartition, batch: Batch) -> memoryview:
        """Return the next batch for a partition as this producer writes it, in no transaction."""
        sequence = self.next_sequence(place, batch.record_count)
        return restamped(batch, self.producers[place], _EPOCH, sequence, transactional=False)

    async def join(self, places: Iterable[TopicPartition]) -> None:
        """Have the ledger say that batches may be sent there; the records are in no transaction. Raises Superseded."""
        await self._sendings.begin(places)

    async def produce(self, node: int, batches: Mapping[TopicPartition, bytes | memoryview]) -> Future:
        """Send one batch per partition to their leader, within the lease; return the future answer.

        Raises Superseded if a newer run or attempt took over. Raises Retryable if a time was over before the
        connection was there.
        """
        await self._lease.keep()
        await self.readings.keep(batches)

        def check() -> None:
            self._lease.check()
            self.readings.check(node, batches)
            if wall_ms() >= self.until_ms:
                raise Retryable("a batch, or the one before it, has become too old while it waited to be sent")
            self._under_way = self.readings.sent(node, batches)

        return await self.cluster.submit(self.produced(None, batches, None), node, before=check)

    async def mark(self, node: int, ends: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, int]:
        """Pass offsets `[at, end)` of target partitions by markers, at their leader, within the lease.

        Returns the error codes of partitions that got no marker; empty if all have them. Raises Unanswered if markers
        may be late. Raises Retryable if nothing was sent, or if it is to be read what was appended. Raises Superseded
        if a newer run or attempt took over, and Refused if the brokers do not know the request.
        """
        await self.join(ends)
        await self.markers.open(ends)
        await self._lease.keep()
        await self.readings.keep(ends)
        sent, sent_ms = False, 0

        def check() -> None:
            nonlocal sent, sent_ms
            self._lease.check()
            self.readings.check(node, ends)
            self.markers.check(ends)
            self._under_way = self.readings.sent(node, ends)
            self.markers.sent(ends)
            sent, sent_ms = True, wall_ms()

        counts = {place: end - at for place, (at, end) in ends.items()}
        try:
            answering = await self.cluster.submit(markers_request(counts, self.producers), node, before=check)
            answer = await self.cluster.answered(answering)
        except TooOld:  # the client knows it without sending anything
            self.markers.answered(ends)
            raise
        except FerryError as error:
            if sent:
                raise Unanswered(ends) from error
            raise
        self.markers.answered(ends)
        codes = codes_of(answer)
        wrong = {place: max(codes.get(place) or {-1}, key=abs) for place in ends if codes.get(place) != {0}}
        if wrong:
            return wrong
        for place, (_, end) in ends.items():
            self._ended(place, end)
            self._states[place] = sent_ms
        # There is one answer for all markers of a partition: one of them may have failed. It names no offset, so
        # something of another producer may be before them.
        await self.readings.confirm(ends)
        return {}

    def raise_for(self, code: int, what: str, *, may_be_fenced: bool = True) -> None:
        """Raise the error that a code calls for; nothing for 0. Each is Retryable, but a missing permission.

        The broker compared the batch with its log and did not append it, or its answer is not known: the log is read.
        """
        super().raise_for(code, what, may_be_fenced=False)
