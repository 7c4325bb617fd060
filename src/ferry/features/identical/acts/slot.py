"""One slot's writer that gives records the offsets that they have at the source.

The data is in no transaction. A chunk's receipts follow it in the slot's own transaction, as without identical offsets.
A process may die in between. The next one finds the records in the target's log, and compares them with the source's.
Then it writes the receipts (ADR 57).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from ferry.clock import wall_ms
from ferry.copy.chunk import PartProgress
from ferry.copy.copier import Copier
from ferry.copy.kafka_slot import KafkaSlot, SlotWiring
from ferry.errors import Refused
from ferry.features.identical.acts.copier import IdenticalCopier, expires, not_quiet
from ferry.features.identical.acts.data_writer import DataWriter, Lease, Reading, Readings, Sendings
from ferry.features.identical.acts.found import differing_before, rebuilt
from ferry.features.identical.acts.markers import Markers
from ferry.features.identical.acts.passing import delete_before, pass_over
from ferry.features.identical.acts.target import Standing, advanced, read_again, standings
from ferry.features.identical.rules.empty import due_until, passed_of
from ferry.features.identical.rules.marked import gone_from, usable_until
from ferry.kafka.admin.topic_settings import batch_limits
from ferry.ledger.producer_codec import sending_records
from ferry.ledger.receipt_codec import receipt_records
from ferry.messages.catalogue import sentence
from ferry.model import LedgerRecord, Plan, Receipt, Slice, TopicPartition
from ferry.plan.rules.clock_skew import MAX_SKEW_MS
from ferry.protocol.drops import Drop, Dropped, drop
from ferry.protocol.slot import refuse_if_superseded
from ferry.wire.content import MOST_DECOMPRESSED


class IdenticalSlot(KafkaSlot):
    """Copies slices that have a producer id."""

    IDENTICAL: ClassVar[bool] = True
    COPIER: ClassVar[type[Copier]] = IdenticalCopier

    def __init__(self, wiring: SlotWiring) -> None:
        super().__init__(wiring)
        self._began_ms = wiring.began_ms
        self._lease = Lease(self._look)
        self._readings = Readings(self._read_again)
        self._pieces: dict[TopicPartition, Slice] = {}
        self._sendings = Sendings(self._note_sending, self._lease)
        self._markers = Markers(self._writer, self._ledger, self._ref, wiring.began_ms)
        self._sequences: dict[TopicPartition, int] = {}
        self._states: dict[TopicPartition, int] = {}
        """The last timestamps of the producer states that want these numbers."""
        self._producers: dict[TopicPartition, int] = {}
        self._found: list[PartProgress] = []
        self._to_delete: dict[TopicPartition, tuple[Slice, int]] = {}
        """Slices, and up to where there are empty records, by target partition."""

    async def _look(self) -> None:
        """Read the ledger. Raises Superseded if a newer run or attempt took over.

        Raises Refused if the clock of this machine is slow, by which the age of records is judged. A Spark task may
        run on another machine than that which planned the run.
        """
        records, end = await self._ledger.read(self._ref.generation, None)
        refuse_if_superseded(records, end, self._ref)
        slow_ms = max(self._began_ms - wall_ms(), -(self._ledger.skew_ms or 0))
        if slow_ms > MAX_SKEW_MS:
            raise Refused(sentence("identical.clock", seconds=slow_ms // 1000))

    async def _read_again(self, known: Mapping[TopicPartition, Reading]) -> Mapping[TopicPartition, Reading]:
        return await read_again(self._target, self._pieces, known)

    async def _note_sending(self, places: Collection[TopicPartition]) -> None:
        ref, at_ms = self._ref, wall_ms()
        # A slice with receipts does not begin anywhere: its first offset is in the ledger already.
        firsts = {place: passed_of(piece) for place, piece in self._pieces.items() if piece.target_next is None}
        await self._ledger.append(
            [
                record
                for place in sorted(places)
                for record in sending_records(
                    ref.lane,
                    place,
                    first=firsts.get(place),
                    producer_id=self._producers[place],
                    run=ref.run,
                    at_ms=at_ms,
                )
            ]
        )

    async def begin(self, plan: Plan, todo: Mapping[TopicPartition, Slice]) -> None:
        """Read the target's logs, then start to read what they do not have yet, by `Slice.source`.

        Before the first record of a partition, the offsets that the source has deleted are passed. Raises Dropped for
        slices whose logs have something else than the source's records. Raises Blocked for those that cannot be read
        now.
        """
        self._found = []
        self._refuse_other_offsets(todo.values())
        self._producers = {piece.target: piece.producer for piece in todo.values() if piece.producer is not None}
        self._sendings.known(piece.target for piece in todo.values() if piece.target_next is not None)
        await self._lease.confirm()
        todo = await self._marked(todo)
        await self._check_targets(plan, todo)
        await self._logs.check(todo.values())
        self._pieces = {piece.target: piece for piece in todo.values()}
        unjudged = await self._unjudged([place for place in self._pieces if self._markers.is_timed(place)])
        planned = {piece.target: piece.end for piece in plan.of_slot(self._ref.slot)}
        asked_ms = self._markers.asked_ms()
        ends = await standings(self._target, todo.values(), planned)
        self._readings.note({place: standing.reading for place, standing in ends.items()})
        self._markers.read(ends.keys() - unjudged, asked_ms)
        self._sequences = {place: standing.sequence for place, standing in ends.items()}
        self._states = {place: standing.state_ms for place, standing in ends.items()}
        self._refuse_early(todo.values(), ends, unjudged)
        most, left = max(self._limits.memory_bytes, MOST_DECOMPRESSED), dict(todo)
        unbegun = [piece for piece in todo.values() if ends[piece.target].end == piece.continued_at]
        begins = {place: standing.begin for place, standing in ends.items()}
        differing = await differing_before(self._source, self._target, unbegun, begins, most)
        if differing:
            raise Dropped(differing)
        for piece, standing in advanced(todo.values(), ends):
            end = standing.end
            part = PartProgress(
                plan=plan,
                origin=self._origin,
                piece=piece,
                start=piece.start,
                end=piece.start,
                target_next=piece.start,
                aged=False,
            )
            await rebuilt(self._source, self._target, part, standing.begin, end, most)
            self._found.append(part)
            if end < piece.end:
                left[piece.source] = replace(piece, start=end, target_next=end, read_epoch=None, read_end=None)
            else:
                del left[piece.source]
        for piece in await self._pass_over(plan, ends):
            del left[piece.source]
        await super().begin(plan, left)

    async def _marked(self, todo: Mapping[TopicPartition, Slice]) -> dict[TopicPartition, Slice]:
        """Return the slices with what the ledger says of markers now.

        The plan says what earlier runs did. Only tasks of this run have written since, and this slot's have no
        transaction open any more.
        """
        records, end = list[LedgerRecord](), self._ref.generation
        if any(piece.late_ms is not None for piece in todo.values()):
            records, end = await self._ledger.read(end, None)
        until = self._markers.learn(todo.values(), records, end)
        return {place: replace(piece, marked_ms=until[piece.target]) for place, piece in todo.items()}

    async def _unjudged(self, places: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        """Return the partitions of which this machine's clock decides whether markers are late, if it may be wrong.

        The ledger's broker stamps a record for that: one which is there already. Raises Refused if the clock is wrong.
        """
        if not places:
            return frozenset()
        await self._note_sending(places)
        skew_ms = self._ledger.skew_ms
        if skew_ms is not None and abs(skew_ms) > MAX_SKEW_MS:
            raise Refused(sentence("identical.clock", seconds=abs(skew_ms) // 1000))
        return frozenset(places if skew_ms is None else ())

    def _refuse_early(
        self,
        pieces: Iterable[Slice],
        ends: Mapping[TopicPartition, Standing],
        unjudged: Collection[TopicPartition],
    ) -> None:
        """Raise Dropped for partitions to which nothing may be written yet. What they have gets its receipts."""
        early, now = list[Drop](), wall_ms()
        for piece in pieces:
            here = ends[piece.target]
            if here.end >= piece.end:
                continue
            usable = usable_until(here.end, here.sequence, here.state_ms, piece.max_age_ms or 0)
            if piece.target in unjudged:
                ledger, place = self._ledger.place.topic, str(piece.target)
                early.append(
                    drop("identical.clock.unstamped", piece, here.end, at=here.end, place=place, ledger=ledger)
                )
            elif until := self._markers.waits_until(piece.target):
                early.append(not_quiet(piece, here.end, until))
            elif usable is not None and now >= usable:
                gone = gone_from(here.state_ms, piece.max_age_ms or 0, piece.late_ms or 0)
                early.append(expires(piece, here.end, gone))
        if early:
            raise Dropped(early)

    async def _pass_over(self, plan: Plan, ends: Mapping[TopicPartition, Standing]) -> list[Slice]:
        """Pass the offsets before each slice; return the slices whose partitions do not reach it before the run ends.

        The permission to delete empty records is asked for before there are any.
        """
        first = {place: piece for place, piece in self._pieces.items() if passed_of(piece)}
        # A slice may have got receipts since the plan, of markers alone.
        due = {piece.target: due_until(piece) for piece in plan.of_slot(self._ref.slot)}
        self._to_delete = {
            place: (piece, due[place]) for place, piece in self._pieces.items() if ends[place].begin < due[place]
        }
        todo = {place: (piece, ends[place].end) for place, piece in first.items() if ends[place].end < piece.start}
        if not todo:
            return []
        await delete_before(self._target, {place: (piece, ends[place].begin) for place, (piece, _) in todo.items()})
        limits = await batch_limits(self._target, {place.topic for place in todo})
        own_until = time.monotonic() + self._limits.chunk_seconds  # a late slot also does something

        def enough() -> bool:
            return self._stop() or (self.time_over(plan) and time.monotonic() > own_until)

        done = await pass_over(self._target, self._data_writer(), plan, self._origin, todo, limits, enough)
        self._sequences |= {place: todo[place][0].start for place in done}
        return [piece for place, (piece, _) in todo.items() if place not in done]

    async def _begin_targets(self, plan: Plan, todo: Mapping[TopicPartition, Slice]) -> dict[TopicPartition, int]:
        """Return the offsets that first batches must get: those of the source. `begin` has read the logs."""
        self._plan = plan
        return {piece.target: piece.start for piece in todo.values()}

    def _data_writer(self) -> DataWriter:
        writer = DataWriter(
            self._target,
            self._producers,
            self._lease,
            self._readings,
            self._sendings,
            self._markers,
            self._limits.transaction_timeout_ms,
        )
        writer.begin(self._sequences, self._states)
        return writer

    async def copy_chunk(self) -> list[PartProgress]:
        """Write the next chunk's records, all acknowledged; empty when nothing is left.

        The first chunk is what the target has already, and no receipt covers.
        """
        if self._found:
            parts, self._found = self._found, []
            return await self._chunk_of(parts)
        return await super().copy_chunk()

    async def _chunk_of(self, parts: list[PartProgress]) -> list[PartProgress]:
        """Note the parts of a chunk, after the empty records before them are deleted.

        They are deleted when records follow, because the log may not be deleted up to its end, nor up to a marker.
        Receipts of records come after that, so a run without them does it.
        """
        followed = [part.piece.target for part in parts if part.segments]
        written = {place: self._to_delete[place] for place in followed if place in self._to_delete}
        if written:
            await delete_before(self._target, written)
            for place in written:
                del self._to_delete[place]
        return await super()._chunk_of(parts)

    async def append_receipts(self, receipts: Sequence[Receipt]) -> frozenset[int]:
        """Append receipts, in the transaction, and that all markers were answered; return their ledger offsets."""
        records = [record for receipt in receipts for record in receipt_records(receipt)]
        return await self._markers.append_closing([receipt.target for receipt in receipts], records)

    async def commit(self) -> None:
        """Commit the open transaction: send EndTxn(commit)."""
        await super().commit()
        self._markers.closed(self._chunk)
