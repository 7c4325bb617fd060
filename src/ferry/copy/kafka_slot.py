"""The port by which a slot copies, on real brokers: `TargetSlot` is what all have, `KafkaSlot` the one for batches."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ferry.config.client_options import ENGINE_CHOOSES, FetchOptions
from ferry.copy.batching import BatchingRules
from ferry.copy.chunk import PartProgress
from ferry.copy.copier import REQUEST_BYTES, Copier
from ferry.copy.dropped import answered_drop
from ferry.copy.rate_limiter import RateLimit, RateLimiter
from ferry.copy.row_scope import RowScope
from ferry.copy.target_logs import TargetLogs
from ferry.errors import Refused
from ferry.kafka.admin.topic_settings import batch_limits
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.driver_port import back_off
from ferry.kafka.fetch.epoch_check import Mark
from ferry.kafka.fetch.source import SourceReader
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.kafka.produce.writer import PartitionsRefused, Writer
from ferry.lane.behind import look_behind
from ferry.ledger.receipt_codec import receipt_records
from ferry.messages.refusals import open_facts
from ferry.model import (
    NOT_THROTTLED,
    Compression,
    LedgerRecord,
    Origin,
    Plan,
    Receipt,
    Refusal,
    RefusalKind,
    Slice,
    ThrottleTime,
    TopicPartition,
)
from ferry.protocol.drops import Dropped, drop, verdict
from ferry.protocol.names import position_group, transactional_id
from ferry.protocol.port import ChunkPart
from ferry.protocol.slot import SlotRef


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLimits:
    """Bounds of one task: memory for reading ahead, size and age of a chunk, and the broker's transaction timeout."""

    memory_bytes: int
    chunk_bytes: int
    chunk_seconds: int
    transaction_timeout_ms: int
    isolation: int
    fetch: FetchOptions = ENGINE_CHOOSES
    request_bytes: int | None = None
    """Most bytes of a produce request with more than one batch; None: Ferry's default."""
    compression: Compression | None = None
    """The compression of every batch; None: each keeps its own."""
    rate: RateLimit | None = None
    """What all tasks of the run together may fetch; None means no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotWiring:
    """What a slot's writer needs: the clusters, the slot and its run, the limits."""

    source: Cluster
    target: Cluster
    ledger: LedgerTopic
    ref: SlotRef
    limits: CopyLimits
    origin: Origin
    began_ms: int
    stop: Callable[[], bool]
    portion: RowScope | None = None
    """The ranges for which a slot of rows has rows; None: all of its work."""


class TargetSlot(ABC):
    """What every slot has on brokers: its writer, the ledger, and the target's logs as the plan expects them.

    What a subclass adds is where the records come from.
    """

    def __init__(self, wiring: SlotWiring) -> None:
        ref, limits = wiring.ref, wiring.limits
        self._source = wiring.source
        self._target = wiring.target
        self._ledger = wiring.ledger
        self._ref = ref
        self._limits = limits
        self._origin = wiring.origin
        self._stop = wiring.stop
        self._writer = Writer(
            wiring.target, transactional_id(ref.flow, ref.lane, ref.slot), limits.transaction_timeout_ms
        )
        # The two clocks may be of two machines. A clock that is late costs time at most; one that is early still leaves
        # each try one chunk.
        self._until_now = max(0.0, time.time() - wiring.began_ms / 1000)
        self._started = time.monotonic()
        self._plan: Plan | None = None
        self._chunk: dict[TopicPartition, PartProgress] = {}
        self._logs = TargetLogs(wiring.target)
        self._throttled_before = NOT_THROTTLED
        """The waits that committed receipts have."""
        self._throttled_now = NOT_THROTTLED
        """The waits of committed receipts and of the open chunk."""

    async def read(self, start: int | None, end: int | None) -> tuple[list[LedgerRecord], int]:
        """Return the ledger's records in `[start, end)` with their fates, and the offset read up to.

        `start` or `end` None means the present edge.
        """
        return await self._ledger.read(start, end)

    async def initialise(self) -> None:
        """InitProducerId for the slot: fences earlier tries, ends their open transaction. This is the abort."""
        await self._writer.initialise()

    @abstractmethod
    async def begin(self, plan: Plan, todo: Mapping[TopicPartition, Slice]) -> None:
        """Start to read what is left of slices, by `Slice.source`.

        Raises Dropped for slices that cannot be copied any more. Raises Blocked for those that cannot be copied now.
        """

    @abstractmethod
    async def copy_chunk(self) -> Sequence[ChunkPart]:
        """Produce the next chunk's data inside a transaction, all acknowledged; empty when nothing is left."""

    async def _begin_targets(self, plan: Plan, todo: Mapping[TopicPartition, Slice]) -> dict[TopicPartition, int]:
        """Check the target's logs after the last receipts; return the offsets that our first batches must get.

        Raises Dropped for slices that cannot be copied any more, and Blocked for those that cannot be copied now.
        """
        self._plan = plan
        await self._check_targets(plan, todo)
        await self._logs.check(todo.values())
        return await self._look_behind(plan, todo)

    async def _check_targets(self, plan: Plan, todo: Mapping[TopicPartition, Slice]) -> None:
        topics = await self._target.refresh({piece.target.topic for piece in todo.values()})
        drops = []
        for piece in todo.values():
            info = topics.get(piece.target.topic)
            where: dict[str, Any] = {"target": piece.target.topic, "cluster": self._target.alias}
            if info is None and piece.target.topic in self._target.denied:
                drops.append(drop("target.hidden", piece, piece.start, **where))
            elif info is None:
                drops.append(drop("target.gone.since-plan", piece, piece.start, run=plan.run, **where))
            elif piece.target_topic_id and info.id_text != piece.target_topic_id:
                drops.append(drop("target.recreated.since-plan", piece, piece.start, run=plan.run, **where))
        if drops:
            raise Dropped(drops)

    async def _look_behind(self, plan: Plan, todo: Mapping[TopicPartition, Slice]) -> dict[TopicPartition, int]:
        """Return the offsets that our first batches must get, by target partition.

        Raises Dropped if another writer has written since the plan searched there, or has a transaction open. Raises
        Blocked if no broker can answer now.
        """
        begins = {
            piece.target: max(piece.target_end, piece.target_next or 0)
            for piece in todo.values()
            if piece.target_end is not None and not piece.merged
        }
        behind = await look_behind(self._target, begins)
        drops = []
        for piece in todo.values():
            place, cluster = str(piece.target), self._target.alias
            offset, writer = behind.foreign.get(piece.target), behind.undecided.get(piece.target)
            unseen = behind.unseen.get(piece.target)
            if unseen is not None:
                kind, why = unseen.kind, unseen.why
                passing = kind is not RefusalKind.NOT_AUTHORIZED
                found = drop(
                    "target.unseen",
                    piece,
                    piece.start,
                    kind=kind,
                    passing=passing,
                    place=place,
                    cluster=cluster,
                    why=why,
                )
                drops.append(found)
            elif offset is not None:
                found = drop(
                    "foreign.since-plan", piece, piece.start, place=place, cluster=cluster, at=offset, run=plan.run
                )
                drops.append(found)
            elif writer is not None:
                facts = open_facts(f"{place} on cluster {cluster}", piece.target, writer)
                drops.append(drop("foreign.open.at-work", piece, piece.start, **facts))
        if drops:
            raise verdict(drops)
        return dict(behind.ends)

    def _count_waits(self, part: PartProgress) -> None:
        """Give a part of the open chunk the waits since the last committed receipts."""
        ferry, source, target = (
            round(1000 * seconds) for seconds in (*self._reading_waits_s(), self._target.throttled_s)
        )
        self._throttled_now = ThrottleTime(ferry=ferry, source=source, target=target)
        part.throttled = self._throttled_now - self._throttled_before

    def _reading_waits_s(self) -> tuple[float, float]:
        """Return for how long reading waited by Ferry's own limit, and by quotas of the source, in seconds."""
        return 0.0, self._source.throttled_s

    async def send_positions(self, positions: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """Send positions by target partition, in the transaction.

        Raises Dropped for partitions that may not have one.
        """
        try:
            await self._writer.send_positions(position_group(self._ref.flow, self._ref.lane), positions)
        except PartitionsRefused as error:
            found = [(self._chunk[place], code) for place, code in error.codes.items()]
            raise verdict(
                answered_drop(part.piece, part.start, code, self._target.alias, "keep a position on", "READ")
                for part, code in found
            ) from error

    async def append_receipts(self, receipts: Sequence[Receipt]) -> frozenset[int]:
        """Append receipts, in the transaction; return their ledger offsets."""
        records = [record for receipt in receipts for record in receipt_records(receipt)]
        return await self._ledger.append_in(self._writer, records)

    async def commit(self) -> None:
        """Commit the open transaction: send EndTxn(commit)."""
        await self._writer.commit()
        self._throttled_before = self._throttled_now

    async def leave(self) -> None:
        """End the own open transaction unless it is fenced, so that no reader waits for its timeout.

        Best effort: it takes seconds at most and raises nothing.
        """
        await self._writer.leave()

    async def back_off(self, failures: int) -> None:
        """Wait before the next try; longer after more failures in a row."""
        await back_off(self._target, failures)

    def time_over(self, plan: Plan) -> bool:
        """Return whether the plan's time is over, counted from the attempt's beginning; open chunks are finished."""
        return 0 < plan.max_seconds < self._until_now + time.monotonic() - self._started

    @abstractmethod
    def refusals(self) -> Mapping[TopicPartition, Refusal]:
        """Return why partitions could not be read, by source partition."""

    @abstractmethod
    async def end(self) -> None:
        """Stop reading for good, before the connections are closed."""


class KafkaSlot(TargetSlot):
    """One slot's writer on a real target, reading batches from a real source."""

    IDENTICAL: ClassVar[bool] = False
    """Whether it writes records at the offsets that they have at the source."""
    COPIER: ClassVar[type[Copier]] = Copier
    """What moves the batches to the target."""

    def __init__(self, wiring: SlotWiring) -> None:
        super().__init__(wiring)
        self._committed = False
        self._reader: SourceReader | None = None
        self._copier: Copier | None = None
        self._refusals: dict[TopicPartition, Refusal] = {}
        rate = wiring.limits.rate
        self._share = None if rate is None else RateLimiter(wiring.source, wiring.ledger, rate)

    async def initialise(self) -> None:
        """Stop reading, then InitProducerId for the slot, which is the abort."""
        self.close()
        await super().initialise()

    async def begin(self, plan: Plan, todo: Mapping[TopicPartition, Slice]) -> None:
        """Start to read what is left of slices, by `Slice.source`.

        Raises Dropped for slices that cannot be copied any more. Raises Blocked for those that cannot be copied now.
        Raises Refused for slices that this slot cannot copy as bytes.
        """
        expected = await self._begin_targets(plan, todo)
        pieces = {place: piece for place, piece in todo.items() if not piece.dealt}
        changed = next((piece for piece in pieces.values() if piece.transform), None)
        self._refuse_other_offsets(pieces.values())
        if changed is not None or len(pieces) < len(todo):
            what = "a repartitioned slice" if changed is None else f"{changed.source} by transform {changed.transform}"
            raise Refused(f"slot {self._ref.slot} was to copy {what} as bytes (a bug): nothing was written")
        self._reader = SourceReader(
            self._source,
            {place: (piece.start, piece.end) for place, piece in todo.items()},
            {piece.source.topic: piece.source_topic_id for piece in pieces.values()},
            marks={place: Mark.of(piece.read_epoch, piece.read_end) for place, piece in pieces.items()},
            isolation=self._limits.isolation,
            memory_bytes=self._limits.memory_bytes
            if self._share is None
            else self._share.memory_bytes(self._limits.memory_bytes),
            options=self._limits.fetch,
            throttle=self._share.throttle if self._share is not None else None,
        )
        self._copier = self.COPIER(
            plan,
            self._origin,
            self._reader.buffer,
            self._target,
            self._data_writer(),
            pieces,
            rules=BatchingRules(
                compression=self._limits.compression,
                batch_bytes=await batch_limits(self._target, {piece.target.topic for piece in pieces.values()}),
                memory_bytes=self._limits.memory_bytes,
            ),
            request_bytes=min(REQUEST_BYTES, self._limits.request_bytes or REQUEST_BYTES),
            expected=expected,
        )
        if self._share is not None:
            self._share.begin(plan)
        await self._reader.start()

    def _data_writer(self) -> Writer:
        """Return the writer of the records."""
        return self._writer

    def _refuse_other_offsets(self, pieces: Iterable[Slice]) -> None:
        """Raise Refused for a slice of the other kind of offsets, which would be written in another way."""
        other = next((piece for piece in pieces if (piece.producer is not None) is not self.IDENTICAL), None)
        if other is not None:
            raise Refused(
                f"slot {self._ref.slot} was to copy {other.source} with the other kind of offsets (a bug): nothing was "
                "written"
            )

    async def copy_chunk(self) -> list[PartProgress]:
        """Produce the next chunk's data inside a transaction, all acknowledged; empty when nothing is left."""
        if self._copier is None:
            return []
        first_until = 0.0 if self._committed else time.monotonic() + self._limits.chunk_seconds

        def enough() -> bool:
            late = self._plan is not None and self.time_over(self._plan)
            # The first chunk has its own time: a late slot also copies, and does not wait for ever for a silent source.
            return self._stop() or (late and time.monotonic() > first_until)

        parts = await self._copier.fill(self._limits.chunk_bytes, self._limits.chunk_seconds, enough)
        return await self._chunk_of(parts)

    async def _chunk_of(self, parts: list[PartProgress]) -> list[PartProgress]:
        """Note the parts of a chunk, all of whose data is acknowledged."""
        await self._logs.vouch(parts)
        self._chunk = {part.piece.target: part for part in parts}
        if parts:
            self._count_waits(parts[0])
        return parts

    def _reading_waits_s(self) -> tuple[float, float]:
        own_s = self._share.throttle.waited_s if self._share is not None else 0.0
        return own_s, self._source.throttled_s

    async def commit(self) -> None:
        """Commit the open transaction: send EndTxn(commit)."""
        await super().commit()
        self._committed = True

    def refusals(self) -> Mapping[TopicPartition, Refusal]:
        """Return why partitions could not be read, by source partition."""
        done = self._reader.buffer.finished if self._reader is not None else ()
        earlier = {place: refusal for place, refusal in self._refusals.items() if place not in done}
        return earlier | (self._copier.refusals if self._copier is not None else {})

    async def end(self) -> None:
        """Stop reading for good, before the connections are closed."""
        self.close()
        if self._share is not None:
            await self._share.end()

    def close(self) -> None:
        """Stop reading from the source."""
        if self._share is not None:
            self._share.close()
        if self._reader is not None:
            self._reader.close()
        self._refusals = dict(self.refusals())
        self._reader = self._copier = None
