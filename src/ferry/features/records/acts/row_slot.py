"""The port of a slot of transformed records: it writes them once each, from rows that Spark has sorted.

The protocol is that of every slot. It writes slices, whose records keep their partition, and units, whose records are
repartitioned. Rows come in the order in which these are copied, and within each in the order of its content. So a chunk
is so many rows. A retry returns the rows since the last commit again. What an earlier attempt has committed is passed
over.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ferry.config.flow.transforms import Poison
from ferry.copy.copier import MOST_SEGMENTS
from ferry.copy.kafka_slot import SlotWiring, TargetSlot
from ferry.copy.produce_queue import ProduceQueue
from ferry.copy.row_scope import Todo
from ferry.errors import Refused
from ferry.features.records.acts.cutoffs import Cutoffs, narrowed, refusal_of_unit
from ferry.features.records.acts.dead_letter_writer import DeadLetter, DeadLetterWriter
from ferry.features.records.acts.reading import ReadWaits
from ferry.features.records.acts.row_parts import RepartitionedPart, RowPart, SlicePart
from ferry.features.records.acts.rows import RowBatch, Rows
from ferry.features.records.acts.source_logs import EpochNotes, Marks, SourceLogs
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.kafka.admin.topic_settings import batch_limits
from ferry.kafka.fetch.epoch_check import UNKNOWN_EPOCH
from ferry.model import Codec, Compression, Epochs, Plan, Refusal, Slice, TopicPartition
from ferry.protocol.drops import Drop, Dropped, drop, verdict
from ferry.wire.batch import if_known
from ferry.wire.encoding import RecordColumns, batch_of_columns, batch_room

KEPT_BYTES = 48 << 20
"""A chunk ends when its records, which are kept until it counts, have so many bytes before they are compressed."""

MOST_RECORDS = 10_000

_LOOK_SECONDS = 0.02
"""While rows are read, the event loop has a turn so often."""

_NONE = np.zeros(1, np.bool_)

_NO_RULES: Mapping[str, PoisonRule] = MappingProxyType({})

_NO_CUTOFFS: Cutoffs = MappingProxyType({})

_NONE_SEEN: Marks = MappingProxyType({})


class RowSlot(TargetSlot):
    """One slot's writer of rows on a real target."""

    def __init__(
        self,
        wiring: SlotWiring,
        *,
        rows: Rows,
        rules: Mapping[str, PoisonRule] = _NO_RULES,
        cutoffs: Cutoffs = _NO_CUTOFFS,
        seen: Marks = _NONE_SEEN,
        notes: EpochNotes | None = None,
        waits: ReadWaits | None = None,
    ) -> None:
        """Take the rows; `rules` are by source topic, at least those whose rows may be letters.

        Rows from the `cutoffs` on do not come. For slices it may grow while rows come, until the first row of another
        one. `seen` is what `seen_before` has found. `notes` and `waits` are of rows that are read while they are
        written. For others it is not known for how long reading waited, and the receipts have none of it.
        """
        super().__init__(wiring)
        self._rows = rows
        self._portion = wiring.portion
        self._rules = rules
        self._cutoffs = cutoffs
        self._sources = SourceLogs(source=wiring.source, seen=seen, notes=notes)
        self._waits = waits or ReadWaits()
        self._letterbox = DeadLetterWriter(wiring.target, self._writer, wiring.ref.flow)
        self._left: list[RowPart] = []
        """Parts of what is not copied completely yet, in the order of the rows. Nothing of the first one's chunk is
        sent before `copy_chunk` is called."""
        self._batch_bytes: Mapping[str, int] = {}
        self._short: dict[TopicPartition, Refusal] = {}
        """The refusals of units that do not come to their ends."""
        self._taken = 0
        """Bytes of the records of the open chunk, before they are compressed."""
        self._own: frozenset[TopicPartition] = frozenset()

    async def begin(self, plan: Plan, todo: Mapping[TopicPartition, Slice]) -> None:
        """Start to write what is left of slices.

        The rows since the last commit come again, those of its portion. Raises Dropped for slices that cannot be copied
        any more, Blocked when it is not known now whether a log was cut.
        """
        todo = todo if self._portion is None else self._portion.of(todo)
        todo = self._without_cut_off(todo)
        epochs = await self._sources.check(todo.values())
        todo = self._without_cut_off(todo)  # without what was cut, too
        expected = await self._begin_targets(plan, todo)
        self._rows.rewind()
        slot = self._ref.slot
        self._own = frozenset(piece.target for piece in plan.of_slot(slot))
        self._batch_bytes = await batch_limits(self._target, {piece.target.topic for piece in todo.values()})
        await self._letterbox.begin(
            rule.letters.topic
            for rule in (self._rules.get(piece.source.topic) for piece in todo.values())
            if rule is not None and rule.poison is Poison.SKIP
        )
        parts = [
            self._part(plan, piece, piece.start, piece.target_next, expected.get(piece.target, -1), epochs)
            for piece in todo.values()
        ]
        self._left = sorted(parts, key=lambda part: part.piece.target)

    def _without_cut_off(self, todo: Todo) -> Todo:
        """Return what is left, with units only as far as rows of theirs come, and note why. Dropped for slices."""
        self._drop_cut_off(todo.values())
        cutoffs = self._kept_back()
        found: dict[TopicPartition, Slice] = {}
        for place, piece in todo.items():
            rest = piece
            if piece.dealt:
                refusal = refusal_of_unit(piece, cutoffs)
                if refusal is not None:
                    self._short[place] = refusal
                    rest = narrowed(piece, cutoffs)
            if rest.start < rest.end:
                found[place] = rest
        return found

    def _drop_cut_off(self, pieces: Iterable[Slice]) -> None:
        """Raise Dropped for slices that would be copied past the end of their rows."""
        cutoffs = self._kept_back()
        found = ((piece, cutoffs.get(piece.source)) for piece in pieces if not piece.dealt)
        drops = [
            Drop(piece=piece, refusal=held.refusal, offset=held.offset)
            for piece, held in found
            if held is not None and held.offset < piece.end
        ]
        if drops:
            raise Dropped(drops)

    def _kept_back(self) -> Cutoffs:
        return {**self._cutoffs, **self._sources.cuts}

    def refusals(self) -> Mapping[TopicPartition, Refusal]:
        """Return why units do not come to their ends, by their own number."""
        return self._short

    def _part(
        self,
        plan: Plan,
        piece: Slice,
        source_next: int,
        target_next: int | None,
        expected: int,
        epochs: Mapping[TopicPartition, int],
    ) -> RowPart:
        if piece.dealt:
            return RepartitionedPart(
                plan=plan,
                origin=self._origin,
                piece=piece,
                begins=piece.starts,
                reached=piece.starts,
                target_next=target_next,
                expected=expected,
                source_epochs=_epochs_of(piece, epochs),
            )
        return SlicePart(
            plan=plan,
            origin=self._origin,
            piece=piece,
            start=source_next,
            end=source_next,
            target_next=target_next,
            source_epoch=epochs.get(piece.source, UNKNOWN_EPOCH),
            expected=expected,
        )

    async def copy_chunk(self) -> Sequence[RowPart]:
        """Produce the next chunk's data inside a transaction, all acknowledged.

        A chunk whose time is over ends once it has anything. It is empty when nothing is left, or `stop()`.
        """
        plan = self._plan
        if plan is None or not self._left:
            return []
        found: list[RowPart] = []
        queue = ProduceQueue(self._target, self._writer, lambda: None)
        until = time.monotonic() + self._limits.chunk_seconds
        sent = self._taken = 0
        while self._left and self._has_room(sent, self._left[0]) and not self._stop():
            part = self._left[0]
            moved = any(one.moved for one in found)
            if moved and time.monotonic() >= until:
                break
            rows, letters, is_over = await self._next_rows(part, until, moved=moved)
            if not found or found[-1] is not part:
                found.append(part)
            if rows:
                sent += await self._send(queue, part, rows, first=not sent)
            if letters:
                sent += await self._letterbox.post(queue, part.piece, letters, first=not sent)
                part.letters += len(letters)
            if rows or letters:
                part.come_to(*_last(rows, letters))
            if is_over:
                self._drop_cut_off([part.piece])
                part.come_to_end()
                self._left.pop(0)
            await queue.settle_answered()
        await queue.settle_all()
        found = [part for part in found if part.moved]
        if not found:
            return []
        await self._logs.vouch(found)
        await self._sources.vouch([part for part in found if isinstance(part, SlicePart)])
        self._chunk = {part.piece.target: part for part in found if isinstance(part, SlicePart)}
        if self._left and self._left[0] is found[-1]:
            self._left[0] = self._following(plan, found[-1])
        if isinstance(found[0], SlicePart):
            self._count_waits(found[0])
        return found

    def _has_room(self, sent: int, part: RowPart) -> bool:
        if isinstance(part, SlicePart) and part.runs > MOST_SEGMENTS - MOST_RECORDS:
            return False
        return sent < self._limits.chunk_bytes and self._taken < KEPT_BYTES

    def _following(self, plan: Plan, part: RowPart) -> RowPart:
        """Return the part of the next chunk, which continues where this one has come to."""
        expected = part.expected
        if part.segments and part.target_next is not None:
            expected = part.target_next + 1  # after our marker
        if isinstance(part, SlicePart):
            epochs = {part.piece.source: part.source_epoch}
            return self._part(plan, part.piece, part.end, part.target_next, expected, epochs)
        following = self._part(plan, part.piece, 0, part.target_next, expected, {})
        if isinstance(following, RepartitionedPart):
            following.begins = following.reached = part.reached
            following.source_epochs = part.source_epochs
        return following

    async def _next_rows(
        self, part: RowPart, until: float, *, moved: bool
    ) -> tuple[list[RowBatch], list[DeadLetter], bool]:
        """Return the rows of a part's next batch, the dead letters between them, and whether the part ends with them.

        It is what has come so far if the time is over, or `stop()`. A chunk that has nothing yet, which is not `moved`,
        waits on for its first row. Raises Dropped at a row that is refused, and Refused at one that is for another
        slot.
        """
        target = part.piece.target
        room = min(self._limits.chunk_bytes, batch_room(self._batch_bytes.get(target.topic)))
        found: list[RowBatch] = []
        letters: list[DeadLetter] = []
        count = 0
        while not self._stop() and (time.monotonic() < until or not (moved or count)):
            if not self._rows.is_ready(_LOOK_SECONDS):
                await self._target.loop.sleep(0)
                continue
            row_batch = self._rows.next()
            if row_batch is None or row_batch.target > target:
                if row_batch is not None:
                    self._check_own(row_batch)
                return found, letters, True
            wanted = part.wanted(row_batch) if row_batch.target == target else _NONE
            if not wanted[0]:
                self._check_own(row_batch)
                self._rows.take(_leading(~wanted) if row_batch.target == target else row_batch.size)
                continue
            if row_batch.refusal is not None:
                raise Dropped([drop("transform.poison", part.piece, int(row_batch.offsets[0]), why=row_batch.refusal)])
            sizes = np.cumsum(row_batch.columns().sizes()[: MOST_RECORDS - count])
            fitting = min(int(np.searchsorted(sizes, room, side="right")), _leading(wanted))
            if not fitting and count:
                return found, letters, False
            fitting = max(1, fitting)
            room -= int(sizes[fitting - 1])
            self._taken += int(sizes[fitting - 1])
            count += fitting
            mine = self._rows.take(fitting)
            if mine.letter is None:
                found.append(mine)
            else:
                letters.append(DeadLetter(mine.row(), self._rules[part.piece.source.topic], mine.letter))
        return found, letters, False

    def _check_own(self, row_batch: RowBatch) -> None:
        """Raise Refused for rows of partitions that this slot does not write."""
        if row_batch.target not in self._own:
            raise Refused(
                f"a record for {row_batch.target} came to slot {self._ref.slot}, which does not write there (a bug): "
                "nothing of the chunk was written"
            )

    async def _send(self, queue: ProduceQueue, part: RowPart, rows: list[RowBatch], *, first: bool) -> int:
        piece = part.piece
        batch = batch_of_columns(_columns(rows), self._limits.compression or Compression(codec=Codec.NONE))
        limit = self._batch_bytes.get(piece.target.topic)
        offset = int(rows[0].offsets[0])
        at = offset if not piece.dealt else part.start
        if limit is not None and len(batch.data) > limit:
            found = drop(
                "record.too-large",
                piece,
                at,
                at=offset,
                read=f"{piece.source.topic}-{rows[0].partitions[0]}",
                bytes=len(batch.data),
                place=str(piece.target),
                limit=limit,
            )
            raise verdict([found])
        return await queue.send_batch(part, part.outgoing(rows, batch), at, first=first)

    def _reading_waits_s(self) -> tuple[float, float]:
        return self._waits.throttle_s, self._source.throttled_s + self._waits.quota_s

    async def send_positions(self, positions: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """Send the positions of slices.

        Units have none: a group's offset cannot say how far many partitions were read.
        """
        slices = {place: position for place, position in positions.items() if place in self._chunk}
        if slices:
            await super().send_positions(slices)

    async def commit(self) -> None:
        """Commit the transaction. The rows that were taken are not needed any more."""
        await super().commit()
        self._rows.settle()

    async def end(self) -> None:
        """Wait for the batch that is being read, and leave all else as it is: Spark ends it."""
        while self._rows.is_reading(_LOOK_SECONDS):
            await self._target.loop.sleep(0)


def _epochs_of(unit: Slice, epochs: Mapping[TopicPartition, int]) -> Epochs:
    """Return the leader epochs of a unit's source partitions: of what is read now, else of what was read last."""
    before = unit.epochs
    return tuple(
        if_known(epochs[place]) if place in epochs else before[number] if number < len(before) else None
        for number, (place, _, _) in enumerate(unit.spans)
    )


def _last(rows: Sequence[RowBatch], letters: Sequence[DeadLetter]) -> tuple[int, int]:
    """Return source partition and offset of the last row or letter."""
    places = [(int(one.partitions[-1]), int(one.offsets[-1])) for one in rows[-1:]]
    return max([*places, *((one.row.partition, one.row.offset) for one in letters[-1:])])


def _leading(wanted: npt.NDArray[np.bool_]) -> int:
    """Count the leading ones."""
    return len(wanted) if wanted.all() else int(np.argmin(wanted))


def _columns(rows: Sequence[RowBatch]) -> RecordColumns:
    """Return the rows of one batch as columns."""
    every = [one.columns() for one in rows]
    return every[0] if len(every) == 1 else RecordColumns(*map(pa.concat_arrays, zip(*every, strict=True)))
