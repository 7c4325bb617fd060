"""The exactly-once sink: one slot's writer of units, from rows that Spark has sorted. The protocol is the slot's own.

Rows come in the order in which units are copied, and within a unit in the order of its content. So a chunk is so many
rows, a retry gives those since the last commit again, and what an earlier attempt has committed is passed over.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from ferry.decide.records.units import reached_at, wants
from ferry.errors import Refused, Retryable
from ferry.model import Codec, Compression, Piece, Plan, RefusalKind, TopicPartition, Unit
from ferry.net.admin.topic_settings import batch_limits
from ferry.run.copy.dropped import Hindered, drop, verdict
from ferry.run.copy.kafka_port import KafkaSlot, SlotWiring
from ferry.run.copy.outbox import Entry, Outbox, Request
from ferry.run.copy.outgoing import Outgoing
from ferry.run.records.rows import Row, Rows
from ferry.run.records.unit_part import UnitPart
from ferry.wire.batch import restamped
from ferry.wire.written import batch_of

BATCH_BYTES = 512 << 10
"""Of records before they are compressed."""

_LIMIT_SHARE = 0.9
"""How much of what the target topic takes a batch may have before it is compressed: then it fits."""

_MOST_RECORDS = 10_000


class UnitSlot(KafkaSlot):
    """One slot's writer of units on a real target."""

    def __init__(self, rows: Rows, wiring: SlotWiring) -> None:
        super().__init__(wiring)
        self._rows = rows
        self._left: list[Unit] = []  # not wholly copied yet, in the order of the rows
        self._next: dict[TopicPartition, tuple[tuple[int, ...], int, int]] = {}  # reached, target_next, expected
        self._batch_bytes: Mapping[str, int] = {}
        self._own: frozenset[TopicPartition] = frozenset()

    async def begin(self, plan: Plan, todo: Mapping[TopicPartition, tuple[Piece, int, int]]) -> None:
        """As SlotPort. The rows since the last commit come again."""
        expected = await self._begin_targets(plan, todo)
        self._rows.rewind()
        units = sorted((piece for piece, _, _ in todo.values() if isinstance(piece, Unit)), key=lambda one: one.target)
        self._own = frozenset(unit.target for unit in plan.units_of(self._ref.slot))
        self._left = units
        self._next = {unit.target: (unit.starts, unit.target_next, expected.get(unit.target, -1)) for unit in units}
        self._batch_bytes = await batch_limits(self._target, {unit.target.topic for unit in units})

    async def copy_chunk(self) -> Sequence[UnitPart]:  # type: ignore[override]  # parts of units
        """As SlotPort."""
        if self._plan is None or not self._left:
            return []
        parts: dict[TopicPartition, UnitPart] = {}
        outbox = Outbox(self._target, self._transaction, lambda: None)
        until = time.monotonic() + self._limits.chunk_seconds
        sent = 0
        while sent < self._limits.chunk_bytes and time.monotonic() < until and not self._stop():
            unit, rows, reached = self._next_rows()
            if unit is None:
                break
            part = self._part(parts, self._plan, unit)
            part.reached = reached
            if rows:
                sent += await self._send(outbox, part, rows, first=not sent)
            await outbox.settle_answered()
        await outbox.settle_all()
        found = [part for part in parts.values() if part.reached != part.begins]
        if not found:
            return []
        await self._logs.vouch(found)
        for part in found:
            behind = part.target_next + 1 if part.segments else part.expected  # our marker
            self._next[part.piece.target] = (part.reached, part.target_next, behind)
        return found

    def _next_rows(self) -> tuple[Unit | None, list[Row], tuple[int, ...]]:
        """The rows of the next batch, of one unit, and how far that unit has come with them; no unit: all are done."""
        if not self._left:
            return None, [], ()
        unit = self._left[0]
        taken = int(self._batch_bytes.get(unit.target.topic, BATCH_BYTES) * _LIMIT_SHARE)
        limit = min(BATCH_BYTES, self._limits.chunk_bytes, taken)
        found: list[Row] = []
        size = 0
        while (row := self._rows.next()) is not None and row.target <= unit.target:
            if row.target < unit.target or not wants(unit, row.partition, row.offset):
                self._pass(self._rows.take())
                continue
            if found and (size + row.record.size > limit or len(found) == _MOST_RECORDS):
                break
            size += row.record.size
            found.append(self._rows.take())
        else:
            self._left = self._left[1:]
            return unit, found, unit.ends
        return unit, found, reached_at(unit, found[-1].partition, found[-1].offset)

    def _pass(self, row: Row) -> None:
        """Leave a row out that was written before; Refused for one that would be left out without ever being."""
        if row.target not in self._own:
            raise Refused(
                f"a record for {row.target} came to slot {self._ref.slot}, which does not write there (a bug): nothing "
                "of the chunk was written"
            )

    def _part(self, parts: dict[TopicPartition, UnitPart], plan: Plan, unit: Unit) -> UnitPart:
        part = parts.get(unit.target)
        if part is None:
            reached, target_next, expected = self._next[unit.target]
            part = parts[unit.target] = UnitPart(
                plan=plan,
                origin=self._origin,
                piece=unit,
                begins=reached,
                reached=reached,
                target_next=target_next,
                expected=expected,
            )
        return part

    async def _send(self, outbox: Outbox, part: UnitPart, rows: list[Row], *, first: bool) -> int:
        unit = part.piece
        batch = batch_of([row.record for row in rows], self._limits.compression or Compression(codec=Codec.NONE))
        limit = self._batch_bytes.get(unit.target.topic)
        if limit is not None and len(batch.data) > limit:
            why = (
                f"a record for {unit.target} takes {len(batch.data)} bytes, where it takes {limit}: raise "
                "max.message.bytes there, or let the transform shorten it"
            )
            raise verdict([drop(unit, RefusalKind.TOO_LARGE, part.start, why)])
        try:
            node = self._target.leader(unit.target)
        except Retryable as error:
            why = f"{error}: bring its brokers back"
            raise Hindered([drop(unit, RefusalKind.NO_LEADER, part.start, why)]) from error
        transaction = self._transaction
        sequence = transaction.next_sequence(unit.target, batch.record_count)
        data = restamped(batch, transaction.producer_id, transaction.producer_epoch, sequence)
        request = Request()
        request.add(Entry(part, Outgoing(batch, ((rows[0].offset, batch.record_count),), 0, -1, True, ())), data)
        part.sent(batch)
        if first:
            await outbox.send_first(node, request)
        else:
            await outbox.send(node, request)
        return len(data)

    async def send_positions(self, positions: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """As SlotPort. No group can say how far many source partitions were read: nothing is sent."""

    async def commit(self) -> None:
        """As SlotPort. What was taken of the rows is done with."""
        await super().commit()
        self._rows.settle()
