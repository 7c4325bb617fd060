"""Moves batches from the intake into the open transaction: one batch per partition per request, several in flight."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

from ferry.copy.chunk import PartProgress
from ferry.copy.outbox import Entry, Outbox, Request
from ferry.copy.outgoing import Outgoing
from ferry.copy.packing import Packing, PackingRules
from ferry.copy.workshop import Workshop
from ferry.errors import Retryable
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.intake import Intake
from ferry.kafka.produce.transaction import Transaction
from ferry.messages.refusals import refused
from ferry.model import Origin, Plan, Refusal, Slice, TopicPartition
from ferry.protocol.drops import Hindered, drop
from ferry.wire.batch import restamped

REQUEST_BYTES = 8 << 20
"""A request is closed when it holds this much, unless the file says less; a single larger batch still goes alone."""

MOST_SEGMENTS = 20_000
"""A chunk ends when a part has this many segments, so that its receipt stays well below the ledger's record limit.

A source of tiny transactions makes one for each marker; 20,000 are about 140 kB compressed.
"""


class Pump:
    """Fills one transaction after the other from one intake."""

    def __init__(
        self,
        plan: Plan,
        origin: Origin,
        intake: Intake,
        target: Cluster,
        transaction: Transaction,
        pieces: Mapping[TopicPartition, Slice],
        *,
        rules: PackingRules,
        request_bytes: int = REQUEST_BYTES,
        expected: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """`pieces` are what is left of slices, by source partition.

        `expected`: by target partition where our first batch must come to lie, where that is known.
        """
        self._intake = intake
        self._packing = Packing(intake, rules, Workshop(target.loop))
        self.refusals: dict[TopicPartition, Refusal] = {}
        """By source partition: what stopped on the reading side; what came before it is copied."""
        self._plan = plan
        self._origin = origin
        self._target = target
        self._transaction = transaction
        self._pieces = pieces
        self._positions = {place: (piece.start, piece.target_next) for place, piece in pieces.items()}
        self._expected = dict(expected or {})
        self._request_bytes = request_bytes
        self._parts: dict[TopicPartition, PartProgress] = {}
        self._ready: dict[int, dict[TopicPartition, None]] = {}

    async def fill(self, chunk_bytes: int, chunk_seconds: float, stop: Callable[[], bool]) -> list[PartProgress]:
        """Copy until the chunk is full, its time is over, nothing is left or `stop()`; all writes acknowledged.

        The time of a chunk begins with its first batch. Raises as Outbox.settle_all.
        """
        self._parts = {}
        outbox = Outbox(self._target, self._transaction, self._intake.wake)
        copied, until = 0, math.inf
        while copied < chunk_bytes and time.monotonic() < until and outbox.most_segments < MOST_SEGMENTS and not stop():
            await outbox.settle_answered()
            self._release(outbox)
            self._sort_arrivals()
            if not any(self._ready.values()):
                if self._intake.exhausted():
                    break
                await self._intake.news(min(1.0, max(0.0, until - time.monotonic())))
                continue
            for node in [node for node, places in self._ready.items() if places]:
                request = self._next_request(node)
                if not request.batches:
                    continue
                if copied:
                    await outbox.send(node, request)
                else:
                    until = time.monotonic() + chunk_seconds
                    await outbox.send_first(node, request)
                copied += request.bytes
        await outbox.settle_all()
        self._release(outbox)
        parts = [part for part in self._parts.values() if part.moved]
        for part in parts:
            self._positions[part.piece.source] = part.end, part.target_next
            if part.segments:
                self._expected[part.piece.target] = part.target_next + 1  # our marker
        return parts

    def _release(self, outbox: Outbox) -> None:
        """Let the feeders fetch as much as has found its place."""
        if outbox.acknowledged:
            self._intake.release(outbox.acknowledged)
            outbox.acknowledged.clear()

    def _sort_arrivals(self) -> None:
        """Line up partitions with queued batches by their target leader; take note of failures."""
        arrived, self._intake.arrived = self._intake.arrived, []
        for place in arrived:
            failure = self._intake.failures.get(place)
            if failure is not None:
                self.refusals[place] = refused("said", *place, kind=failure.kind, why=failure.message)
            if self._packing.holds(place):
                self._ready.setdefault(self._leader(place), {})[place] = None
            elif place in self._intake.finished:
                self._finish(place)

    def _finish(self, place: TopicPartition) -> None:
        self._part(place).reached(self._pieces[place].end, self._intake.marks[place].epoch)

    def _leader(self, place: TopicPartition) -> int:
        piece = self._pieces[place]
        try:
            return self._target.leader(piece.target)
        except Retryable as error:
            raise Hindered([drop("target.leaderless", piece, self._part(place).end, why=str(error))]) from error

    def _part(self, place: TopicPartition) -> PartProgress:
        part = self._parts.get(place)
        if part is None:
            source_next, target_next = self._positions[place]
            part = self._parts[place] = PartProgress(
                plan=self._plan,
                origin=self._origin,
                piece=self._pieces[place],
                start=source_next,
                end=source_next,
                target_next=target_next,
                expected=self._expected.get(self._pieces[place].target, -1),
            )
        return part

    def _next_request(self, node: int) -> Request:
        """One batch of each waiting partition of a broker, up to the request limit."""
        waiting = self._ready[node]
        request = Request()
        for place in list(waiting):
            part = self._part(place)
            out = self._packing.next(place, part)
            if out is not None:
                if request.bytes and request.bytes + len(out.batch.data) > self._request_bytes:
                    break
                self._put(request, part, self._packing.take(place))
                self._packing.look_ahead(place, part)
            if self._packing.is_making(place):
                del waiting[place]  # it arrives once more
            elif not self._packing.holds(place):
                del waiting[place]
                if place in self._intake.finished:
                    self._finish(place)
        return request

    def _put(self, request: Request, part: PartProgress, out: Outgoing) -> None:
        transaction, batch = self._transaction, out.batch
        sequence = transaction.next_sequence(part.piece.target, batch.record_count)
        written = restamped(batch, transaction.producer_id, transaction.producer_epoch, sequence)
        request.add(Entry(part, out), written)
        part.sent(out)
