"""One slot of an attempt: it takes over, and writes what its partitions lack, each transaction with its receipts last.

The order is that of the protocol (docs/internals/protocol.md, steps 4 to 7): read, InitProducerId, read again. Only
then it is known what an earlier writer has committed. Then come data, receipts, a last read up to these, and the
commit. `EndTxn(abort)` is never sent: the next InitProducerId aborts. `ferry.protocol.slot` is its twin in the kernel,
and `ferry.copy.produce_queue` that of its requests: a fix of one belongs in the other, too.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from kafka.future import Future

from ferry.errors import Fenced, FerryError, OutcomeUnknown, Refused, Retryable, Superseded
from ferry.features.records.acts.cluster import connected
from ferry.features.sink.acts.ids import SlotSpec, delivery_ledger, delivery_writer
from ferry.features.sink.rules import codec
from ferry.features.sink.rules.batch_state import BatchState, foreign_record, other_sentence, standing
from ferry.kafka.admin.topic_settings import batch_limits
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.kafka.produce.writer import PartitionsRefused, StillCompleting, Writer
from ferry.messages.catalogue import sentence
from ferry.model import Codec, Compression, TopicPartition
from ferry.model.delivery import DeliveryReceipt, Due
from ferry.wire.arrow_columns import numbers_of
from ferry.wire.encoding import RecordColumns, batch_of_columns, batch_room

COLUMNS = ("topic", "partition", "timestamp", "key", "value", "headers", "digest")
"""The columns of a slot's rows, sorted by topic and partition, and in each partition in the order of writing."""

IN_FLIGHT = 5
"""The most requests in flight: the highest number with which Kafka keeps an idempotent producer's order."""

_MODULUS = 1 << 64


@dataclass(slots=True, kw_only=True)
class _Part:
    """A target partition, with the rows that have come so far."""

    place: TopicPartition
    due: Due
    known: DeliveryReceipt | None
    records: int = 0
    digest: int = 0
    first: int = -1
    last: int = -1

    @property
    def skip(self) -> int:
        """How many of its next rows are written already."""
        return max(0, (0 if self.known is None else self.known.done.records) - self.records)

    def receipt(self, spec: SlotSpec) -> DeliveryReceipt:
        return DeliveryReceipt(
            place=self.place,
            done=Due(self.records, self.digest),
            first=self.first if self.known is None else self.known.first,
            last=self.last,
            slot=spec.slot,
            generation=spec.generation,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A batch of `count` rows that was sent to the broker `node`."""

    part: _Part
    node: int
    data: memoryview
    count: int


class DeliverySlot:
    """Writes the rows of one slot. It is used on the cluster's event loop."""

    def __init__(self, cluster: Cluster, spec: SlotSpec, rows: Iterable[pa.RecordBatch]) -> None:
        delivery = spec.delivery
        self._cluster = cluster
        self._spec = spec
        self._rows = rows
        self._ledger = LedgerTopic(cluster, delivery.application, topic=delivery_ledger(delivery.application))
        name = delivery_writer(delivery.application, spec.slot)
        self._writer = Writer(cluster, name, delivery.transaction_timeout_ms)
        self._receipts: dict[TopicPartition, DeliveryReceipt] = {}
        self._cursor = spec.generation
        self._limits: Mapping[str, int] = {}
        self._part: _Part | None = None
        self._parts: dict[TopicPartition, _Part] = {}
        self._chunk: dict[TopicPartition, _Part] = {}
        self._taken = 0
        self._began = 0.0
        self._flying: deque[tuple[_Sent, Future]] = deque()

    async def write(self) -> list[DeliveryReceipt]:
        """Write what is lacking, and return the receipts of all that is due.

        Raises Superseded if a newer attempt took over. Raises Refused for what another attempt would meet again, and
        for rows that are not what was settled. Raises Retryable or Unreachable otherwise: the slot may then be started
        again.
        """
        try:
            await self._take_over()
            for place, batch in _by_place(self._rows):
                await self._take(place, batch)
            self._refuse_lacking()
            await self._commit()
            return [self._receipts[place] for place in sorted(self._spec.due)]
        except Fenced as error:
            await self._refuse_newer()
            raise Retryable(f"slot {self._spec.slot} of {self._spec.delivery} was fenced: {error}") from error
        except OutcomeUnknown as error:
            # For a moment, brokers report to an overtaken writer that a commit is in progress: the one of the other
            # writer.
            try:
                with suppress(Retryable):
                    await self._refuse_newer()
            except Superseded:
                raise
            except FerryError:
                await self._writer.leave()
                raise
            await self._writer.leave()
            raise Retryable(f"slot {self._spec.slot} of {self._spec.delivery}: {error}") from error
        except FerryError:
            await self._writer.leave()
            raise

    async def _take_over(self) -> None:
        await self._refuse_newer()
        await self._writer.initialise()
        found = await self._refuse_newer()
        if found.undecided & self._spec.due.keys():
            raise Retryable(f"a receipt for {min(found.undecided & self._spec.due.keys())} is still undecided")
        self._receipts = {
            place: receipt for place, receipt in self._spec.receipts.items() if place in self._spec.due
        } | {place: receipt for place, receipt in found.receipts.items() if place in self._spec.due}
        topics = {place.topic for place in self._spec.due}
        await self._cluster.refresh(topics)
        self._limits = await batch_limits(self._cluster, topics)

    async def _refuse_newer(self) -> BatchState:
        """Return what this attempt has written so far. Raises Superseded if it is not the newest any more."""
        spec = self._spec
        records, self._cursor = await self._ledger.read(spec.generation, None)
        found = standing(records, spec.delivery.batch, f"ledger {self._ledger.place.topic}")
        if found.newest > spec.generation:
            raise Superseded(sentence("superseded.delivery", delivery=str(spec.delivery)))
        if found.newest < spec.generation:
            raise Retryable(f"the ledger of {spec.delivery} does not (yet) show what slot {spec.slot} has to know")
        return found

    async def _take(self, place: TopicPartition, batch: pa.RecordBatch) -> None:
        part = await self._part_of(place)
        at, count = 0, batch.num_rows
        while at < count:
            rest = batch.slice(at)
            if part.skip:
                number = min(part.skip, rest.num_rows)
                self._count(part, rest.slice(0, number))
                if not part.skip and part.known is not None:
                    self._check(part, part.known.done)
            else:
                number = await self._send(part, rest)
            at += number

    async def _part_of(self, place: TopicPartition) -> _Part:
        """Return the part that a row belongs to.

        Raises Refused if the part before it is incomplete, or the row was not settled.
        """
        part = self._part
        if part is None or part.place != place:
            if part is not None:
                self._check(part, part.due)
            if place in self._parts or place not in self._spec.due:
                raise Refused(self._other(place, self._spec.due.get(place), None))
            part = self._part = self._parts[place] = _Part(
                place=place, due=self._spec.due[place], known=self._receipts.get(place)
            )
        return part

    def _check(self, part: _Part, wanted: Due) -> None:
        found = Due(part.records, part.digest)
        if found != wanted:
            raise Refused(self._other(part.place, part.due, found))

    def _other(self, place: TopicPartition, due: Due | None, found: Due | None) -> str:
        return other_sentence(str(self._spec.delivery), [(place, due, found)])

    def _count(self, part: _Part, rows: pa.RecordBatch) -> None:
        """Count the next rows of a partition. Raises Refused if they are not what was settled."""
        digests = numbers_of(rows.column("digest")).astype(np.int64).view(np.uint64)
        part.records += rows.num_rows
        part.digest = (part.digest + int(digests.sum(dtype=np.uint64))) % _MODULUS
        if part.records > part.due.records:
            raise Refused(self._other(part.place, part.due, Due(part.records, part.digest)))
        if part.records == part.due.records:
            self._check(part, part.due)

    async def _send(self, part: _Part, rows: pa.RecordBatch) -> int:
        """Send a batch of the next rows; return how many rows it has."""
        if self._chunk and (self._taken >= self._spec.chunk_bytes or time.monotonic() > self._until):
            await self._commit()
        limit = self._limits.get(part.place.topic)
        room = min(self._spec.chunk_bytes, batch_room(limit))
        columns = RecordColumns(*(rows.column(name) for name in COLUMNS[2:6]))
        sizes = np.cumsum(columns.sizes())
        count = max(1, int(np.searchsorted(sizes, room, side="right")))
        self._count(part, rows.slice(0, count))
        batch = batch_of_columns(
            RecordColumns(*(column.slice(0, count) for column in columns)),
            self._spec.delivery.compression or Compression(codec=Codec.NONE),
        )
        if limit is not None and len(batch.data) > limit:
            raise Refused(
                f"a record of {self._spec.delivery} for {part.place} takes {len(batch.data)} bytes, but the topic on "
                f"cluster {self._cluster.alias} accepts {limit}: raise max.message.bytes there, or make it shorter"
            )
        writer = self._writer
        try:
            await writer.join([part.place])
        except PartitionsRefused as error:
            raise Refused(f"{self._spec.delivery}: {error}: grant WRITE, or look whether it is there") from error
        data = writer.stamped(part.place, batch)
        sent = _Sent(part=part, node=self._cluster.leader(part.place), data=data, count=count)
        if not self._chunk:
            self._began = time.monotonic()
            await self._send_alone(sent)
        else:
            while len(self._flying) >= IN_FLIGHT:
                await self._settle()
            self._flying.append((sent, await writer.produce(sent.node, {part.place: data})))
        self._chunk[part.place] = part
        self._taken += int(sizes[count - 1])
        return count

    @property
    def _until(self) -> float:
        return self._began + self._spec.chunk_seconds

    async def _send_alone(self, sent: _Sent) -> None:
        """Send a batch while nothing else of its partition is in flight.

        It is sent again while its partition cannot join the transaction.
        """

        async def send() -> None:
            answer = await self._cluster.answered(await self._writer.produce(sent.node, {sent.part.place: sent.data}))
            await self._note(sent, answer)

        await self._writer.patiently(send)

    async def _settle(self) -> None:
        """Record the oldest answer.

        Send batches again that the broker refused because their partition could not join yet.
        `ferry.copy.produce_queue` does the same.
        """
        sent, future = self._flying.popleft()
        try:
            await self._note(sent, await self._cluster.answered(future))
        except StillCompleting:
            waiting = [sent]
        else:
            return
        while self._flying:  # later batches for the same partition are out of order there
            sent, future = self._flying.popleft()
            late = any(before.part is sent.part for before in waiting)
            try:
                await self._note(sent, await self._cluster.answered(future), late=late)
            except StillCompleting:
                waiting.append(sent)
        for sent in waiting:
            await self._send_alone(sent)

    async def _note(self, sent: _Sent, answer: Any, *, late: bool = False) -> None:
        """Record the offsets of a batch. Raises StillCompleting if its partition could not join the transaction.

        `late`: the batch before it could not join, so this one is out of order.
        """
        part, count = sent.part, sent.count
        outcome = answer.responses[0].partition_responses[0]
        code = outcome.error_code
        if late and code == codes.OUT_OF_ORDER_SEQUENCE_NUMBER:
            code = codes.CONCURRENT_TRANSACTIONS
        if late and code == codes.NONE:
            raise Retryable(f"{part.place} took a batch, and the one before it could not join the transaction")
        where = f"{part.place} on cluster {self._cluster.alias}"
        if code in (codes.MESSAGE_TOO_LARGE, codes.RECORD_LIST_TOO_LARGE):
            raise Refused(f"a record of {self._spec.delivery} is too large for {where}: raise max.message.bytes there")
        if code in (codes.INVALID_TIMESTAMP, codes.INVALID_RECORD):
            raise Refused(
                f"{where} does not take a record of {self._spec.delivery} ({codes.describe(code)} "
                f"{outcome.error_message or ''}): compare it with the topic's message.timestamp.* and cleanup settings"
            )
        if code in codes.LEADER_MOVED:
            await self._cluster.refresh([part.place.topic])
            raise Retryable(f"{where} answers {codes.advised(code)}")
        self._writer.raise_for(code, f"writing to {part.place}")
        if part.first < 0:
            part.first = outcome.base_offset
        part.last = outcome.base_offset + count - 1

    async def _commit(self) -> None:
        """Write the receipts last, read the ledger up to them, and commit."""
        while self._flying:
            await self._settle()
        if not self._chunk:
            return
        spec = self._spec
        receipts = [part.receipt(spec) for part in self._chunk.values()]
        own = await self._ledger.append_in(
            self._writer, [codec.receipt_record(spec.delivery.batch, one) for one in receipts]
        )
        end = max(own) + 1
        records, _ = await self._ledger.read(self._cursor, end)
        why = foreign_record(records, spec.delivery.batch, spec.generation, own, self._chunk)
        if why is not None:
            raise Retryable(f"slot {spec.slot} of {spec.delivery} wrote nothing: {why}")
        await self._writer.commit()
        self._cursor = end
        self._receipts |= {one.place: one for one in receipts}
        self._chunk, self._taken = {}, 0

    def _refuse_lacking(self) -> None:
        """Raise Retryable if rows are missing: a broken stream of Spark cannot be distinguished from one that ends."""
        for place, due in sorted(self._spec.due.items()):
            part = self._parts.get(place)
            found = None if part is None else Due(part.records, part.digest)
            if found != due:
                raise Retryable(self._other(place, due, found))


def write_slot(spec: SlotSpec, rows: Iterable[pa.RecordBatch]) -> list[DeliveryReceipt]:
    """Write one slot over a connection of its own, and return the receipts of all that is due.

    Raises Superseded, Refused, Retryable and Unreachable.
    """
    delivery = spec.delivery
    with connected(delivery.alias, delivery.connection, patience_s=delivery.patience_s) as cluster:
        found: list[DeliveryReceipt] = cluster.loop.run(DeliverySlot(cluster, spec, rows).write)
        return found


def _by_place(rows: Iterable[pa.RecordBatch]) -> Iterator[tuple[TopicPartition, pa.RecordBatch]]:
    """Yield the rows that follow each other and go to one partition."""
    for batch in rows:
        count = batch.num_rows
        if not count:
            continue
        topics = batch.column("topic").dictionary_encode()
        numbers = numbers_of(batch.column("partition"))
        changes = np.flatnonzero((np.diff(numbers_of(topics.indices)) != 0) | (np.diff(numbers) != 0)) + 1
        for start, end in pairwise([0, *changes.tolist(), count]):
            place = TopicPartition(topics[start].as_py(), int(numbers[start]))
            yield place, batch.slice(start, end - start)
