"""What a slot knows of markers at its target partitions: they pass offsets at which the source has no record (ADR 57).

The ledger says until when one may be sent, before the first one is. Nothing compares a marker, so a slot sends one only
if no marker of an earlier writer can arrive any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.producer import WriteTxnMarkersRequest

from ferry.clock import boot_ms, wall_ms
from ferry.errors import Retryable
from ferry.features.identical.rules.marked import (
    after_silence,
    is_quiet,
    may_send,
    no_earlier,
    no_later,
    quiet_from,
    shows_all_markers,
)
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.kafka.produce.writer import Writer
from ferry.ledger.producer_codec import marking_of, marking_record
from ferry.model import Fate, LedgerRecord, Record, Slice, TopicPartition
from ferry.plan.rules.clock_skew import MAX_SKEW_MS
from ferry.protocol.slot import SlotRef

MARKING_MS = 120_000
"""How long a slot may send markers to a partition after it said so in the ledger."""
APART_MS = 2 * MAX_SKEW_MS
"""The most by which the clocks of two machines may differ. The ledger lets a slot send markers for this much longer
than it does."""
_OF_THE_PLAN = -1


@dataclass(slots=True)
class _Known:
    """What is known of one partition. Times are wall clocks' (ms), but that of `own_until` counts since boot."""

    piece: Slice
    seen: set[int] = field(default_factory=set)
    """Ledger offsets of the records of other writers that were taken into account."""
    earlier_until: int = 0
    """Until when the ledger lets earlier writers send markers; 0: all were answered."""
    quiet: bool = False
    """Whether no marker of an earlier writer can arrive."""
    read_at: int = 0
    own_until: int = 0
    said_until: int = 0
    """What this slot's newest record lets it do; 0: it says that all markers were answered, or there is none."""


class Markers:
    """The markers of one slot. A slot that takes over again keeps what it knew, unless another writer came between."""

    def __init__(self, writer: Writer, ledger: LedgerTopic, ref: SlotRef, began_ms: int) -> None:
        """`writer` is the slot's own: an initialised successor aborts what it has not committed.

        `began_ms` is when the attempt began (wall clock of the machine that planned it).
        """
        self._began_ms, self._began_boot_ms = max(wall_ms(), began_ms), boot_ms()
        self._writer, self._ledger, self._ref = writer, ledger, ref
        self._of: dict[TopicPartition, _Known] = {}
        self._own: set[int] = set()
        self._read_to = ref.generation
        """Up to which ledger offset the records about markers were taken into account."""

    def learn(
        self, pieces: Iterable[Slice], records: Iterable[LedgerRecord], end: int
    ) -> dict[TopicPartition, int | None]:
        """Take what the plan and the ledger since then say, up to its offset `end`, after the slot was initialised.

        A broker that leads no more may have shown an early end. So the rest is read before something is committed.
        Returns until when markers may have been sent to each target partition; None: never.
        """
        self._read_to = end
        newest: dict[TopicPartition, tuple[int, int]] = {}
        for record in records:
            found = None if record.fate is Fate.ABORTED else marking_of(record, self._ref.lane)
            if found is not None:
                newest[found[0]] = record.offset, found[1]
        until: dict[TopicPartition, int | None] = {}
        for piece in pieces:
            known = self._of.setdefault(piece.target, _Known(piece))
            known.piece = piece
            at, said = newest.get(piece.target, (_OF_THE_PLAN, piece.marked_ms or 0))
            if at not in known.seen | self._own:
                known.seen.add(at)
                known.earlier_until, known.quiet, known.own_until, known.said_until = said, said == 0, 0, 0
            until[piece.target] = said if at >= 0 else piece.marked_ms
        return until

    def asked_ms(self) -> int:
        """Return the time (wall clock) of a reading that is asked for now, as `read` takes it."""
        return no_later(wall_ms(), self._began_ms + boot_ms() - self._began_boot_ms)

    def read(self, places: Iterable[TopicPartition], asked_ms: int) -> None:
        """Note that the ends of partitions were asked for at that time, and found settled."""
        for place in places:
            known = self._of[place]
            known.read_at = asked_ms
            late = known.piece.late_ms
            known.quiet = known.quiet or (late is not None and is_quiet(asked_ms, known.earlier_until, late))

    def appended(self, place: TopicPartition) -> None:
        """Note that a batch was appended where the reading ended, or after that: the leader had answered the reading.

        A batch that was sent when the slot was not quiet is the first one after the reading.
        """
        known = self._of[place]
        known.quiet = known.quiet or shows_all_markers(known.read_at, known.earlier_until)

    def is_timed(self, place: TopicPartition) -> bool:
        """Return whether the wall clock decides from when on the slot may pass holes of a partition."""
        known = self._of[place]
        return not known.quiet and known.earlier_until > 0

    def is_quiet(self, place: TopicPartition) -> bool:
        """Return whether the slot may pass holes of a partition."""
        return self._of[place].quiet

    def quiet_at(self, place: TopicPartition) -> int:
        """Return when a slot that begins then is quiet in any case (wall clock, ms)."""
        known = self._of[place]
        return quiet_from(known.earlier_until, known.piece.late_ms or 0)

    def waits_until(self, place: TopicPartition) -> int:
        """Return until when (wall clock, ms) the slot is to write nothing to a partition; 0: it may write.

        Before that, a batch would prove nothing about late markers. The log would end at the next hole, which needs
        that proof.
        """
        known = self._of[place]
        early = not known.quiet and not shows_all_markers(known.read_at, known.earlier_until)
        return known.earlier_until if early else 0

    async def open(self, places: Iterable[TopicPartition]) -> None:
        """Write to the ledger that markers are sent to partitions from now on, where it does not say so.

        Raises Fenced if another writer took the slot over, and OutcomeUnknown or Retryable: then it may say so, and
        nothing was sent. Retryable is also raised if another writer's record about markers was not read before.
        """
        now = boot_ms()
        some = [self._of[place] for place in sorted(places) if not may_send(now, self._of[place].own_until)]
        if not some:
            return
        at = no_earlier(wall_ms(), self._began_ms + now - self._began_boot_ms)
        until = at + MARKING_MS + APART_MS
        await self._append([self._record(known, until, at) for known in some])
        await self._read_rest()
        await self._writer.commit()
        for known in some:
            known.own_until, known.said_until = now + MARKING_MS, until

    def check(self, places: Iterable[TopicPartition]) -> None:
        """Raise Retryable unless markers may be sent to partitions now."""
        now, at = boot_ms(), wall_ms()
        for known in (self._of[place] for place in places):
            # The clock that counts sleep does not count for how long a guest was stopped.
            over = not may_send(now, known.own_until) or not may_send(at, known.said_until)
            if over or not known.quiet:
                place = known.piece.target
                raise Retryable(f"the time to send markers to {place} is over: its end is read again")

    def sent(self, places: Iterable[TopicPartition]) -> None:
        """Note that markers of this slot may be late, as long as they are not answered."""
        for place in places:
            known = self._of[place]
            known.quiet, known.earlier_until = False, after_silence(known.earlier_until, known.said_until)

    def answered(self, places: Iterable[TopicPartition]) -> None:
        """Note that the broker has done with the markers that were sent, whether it appended them or not."""
        for place in places:
            self._of[place].quiet = True

    async def append_closing(self, places: Iterable[TopicPartition], records: list[Record]) -> frozenset[int]:
        """Append records in the slot's transaction, and that all markers were answered, where that is so.

        Returns their ledger offsets. The slot says again that it sends markers before it sends the next one. Raises
        Retryable as `open` does.
        """
        at, closing = wall_ms(), []
        for known in (self._of[place] for place in sorted(places) if place in self._of):
            known.own_until = 0
            if known.quiet and (known.earlier_until or known.said_until):
                closing.append(self._record(known, 0, at))
        offsets = await self._append([*records, *closing])
        if closing:
            await self._read_rest()
        return offsets

    def closed(self, places: Iterable[TopicPartition]) -> None:
        """Note that the transaction of `append_closing` was committed."""
        for known in (self._of[place] for place in places if place in self._of):
            if known.quiet:
                known.earlier_until = known.said_until = 0

    async def _read_rest(self) -> None:
        """Read the ledger up to this slot's own records, which are there for certain."""
        end = max(self._own) + 1
        records, _ = await self._ledger.read(min(self._read_to, end), end)
        for record in records:
            if record.fate is Fate.ABORTED or record.offset in self._own:
                continue
            found = marking_of(record, self._ref.lane)
            if found is not None and found[0] in self._of and record.offset not in self._of[found[0]].seen:
                raise Retryable(
                    f"the ledger did not show a record about markers to {found[0]} before: it is read again"
                )
        self._read_to = end

    async def _append(self, records: list[Record]) -> frozenset[int]:
        offsets = await self._ledger.append_in(self._writer, records)
        self._own |= offsets
        return offsets

    def _record(self, known: _Known, until: int, at: int) -> Record:
        return marking_record(self._ref.lane, known.piece.target, until_ms=until, run=self._ref.run, at_ms=at)


def markers_request(counts: Mapping[TopicPartition, int], producers: Mapping[TopicPartition, int]) -> Any:
    """Return the request that writes so many markers to each target partition, of its producer id and epoch 0."""
    marker = WriteTxnMarkersRequest.WritableTxnMarker
    return WriteTxnMarkersRequest(
        markers=[
            marker(
                producer_id=producer,
                producer_epoch=0,
                transaction_result=False,
                topics=_topics(some),
                coordinator_epoch=0,
            )
            for number in range(max(counts.values()))
            for producer in sorted({producers[place] for place in counts})
            if (some := [place for place, count in counts.items() if number < count and producers[place] == producer])
        ],
        max_version=1,
    )


def _topics(places: Collection[TopicPartition]) -> list[Any]:
    topic = WriteTxnMarkersRequest.WritableTxnMarker.WritableTxnMarkerTopic
    by_topic: dict[str, list[int]] = {}
    for place in sorted(places):
        by_topic.setdefault(place.topic, []).append(place.partition)
    return [topic(name=name, partition_indexes=numbers) for name, numbers in by_topic.items()]


def codes_of(answer: Any) -> dict[TopicPartition, set[int]]:
    """Return the error codes of an answer to a request of markers, by target partition."""
    found: dict[TopicPartition, set[int]] = {}
    for marker in answer.markers:
        for topic in marker.topics:
            for part in topic.partitions:
                place = TopicPartition(topic=topic.name, partition=part.partition_index)
                found.setdefault(place, set()).add(part.error_code)
    return found
