"""An attempt at a batch, on the driver. It fences earlier ones before it reads what they have written.

1. Append the attempt's record; its ledger offset is the generation.
2. Read the ledger up to it. Fence all slots that any attempt ever had, and the driver's own writer.
3. Append the record of the fencing with that writer, and read the ledger up to that record (ADR 5). All records that
   earlier attempts have written are before it, and decided.
4. Settle what the batch is, let slots write it (`ferry.features.sink.acts.slot`), close it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Iterable, Mapping
from uuid import uuid4

from ferry.clock import wall_ms
from ferry.errors import BadInput, Fenced, OutcomeUnknown, Refused, Retryable, Superseded
from ferry.features.sink.acts.ids import DRIVER, DeliverySpec, delivery_ledger, delivery_writer
from ferry.features.sink.rules import codec
from ferry.features.sink.rules.batch_state import BatchState, expired, last_known, standing
from ferry.kafka.connect.cluster import Cluster, TopicInfo
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.kafka.produce.open_transactions import named_transactions
from ferry.kafka.produce.writer import Writer
from ferry.messages.catalogue import sentence
from ferry.messages.refusals import open_sentence
from ferry.model import Record, TopicPartition
from ferry.model.delivery import DeliveryReceipt, Settled, TargetShape

NEAR_RECORDS = 256
"""The last attempt is first searched in this many offsets before the end, then in four times as many."""

MOST_SETTLED_BYTES = 1_000_000
"""The largest description of a batch, with its target offsets, that one ledger record may hold (bytes).

That is enough for about 9,000 target partitions.
"""


class Attempt:
    """One attempt, on the driver's connection to the cluster. It is used on the connection's event loop."""

    def __init__(self, cluster: Cluster, spec: DeliverySpec) -> None:
        self._cluster = cluster
        self._spec = spec
        self._ledger = LedgerTopic(cluster, spec.application, topic=delivery_ledger(spec.application))
        self._writer = self._transaction(DRIVER)
        self._where = f"ledger {self._ledger.place.topic} on cluster {cluster.alias}"
        self.generation = -1

    async def open(self, slots: int) -> BatchState:
        """Do steps 1 to 3, and return what the ledger has of the batch.

        Raises Superseded if a newer attempt began meanwhile. Raises Refused for a ledger that would not keep receipts,
        and for a batch that the ledger has forgotten.
        """
        spec = self._spec
        await self._ledger.open(spec.ledger_replicas)
        name = uuid4().hex
        host = f"{socket.gethostname()}:{os.getpid()}"
        self.generation = await self._ledger.append([codec.attempt_record(name, spec.batch, slots, wall_ms(), host)])
        before = await self._look(self.generation + 1)
        for slot in range(before.slots):
            await self._transaction(slot).initialise()
        await self._writer.initialise()
        old = [key for key, at in before.attempts.items() if at < self.generation]
        record = codec.fenced_record(self.generation, before.slots, before.known(self.generation))
        fenced = await self._write([record, *(codec.tombstone([codec.ATTEMPT, key]) for key in old)])
        found = await self._look_again(before, max(fenced) + 1, fenced)
        self._refuse_newer(found)
        if spec.batch <= found.forgotten and found.settled is None:
            raise Refused(
                f"{spec} may have been written: nothing is known any more of its batches up to {found.forgotten}; "
                "continue with a higher number, or with another application name"
            )
        return found

    async def shapes(self, topics: Collection[str], found: BatchState) -> dict[str, TargetShape]:
        """Return the target topics as they are now, with the numbers of partitions with which the batch was begun.

        Raises BadInput for a topic that does not exist, Refused for one that is hidden, or was created again since the
        batch was begun.
        """
        known = {} if found.settled is None else found.settled.topics
        names = sorted({*topics, *known})
        there = await self._cluster.refresh(names)
        shapes: dict[str, TargetShape] = {}
        for name in names:
            info = there.get(name)
            before = known.get(name)
            where = f"topic {name} on cluster {self._cluster.alias}"
            if info is None and name in self._cluster.denied:
                raise Refused(f"{where} is hidden from this login: grant WRITE on it")
            if info is None or not info.partitions:
                raise BadInput(f"{where} is not there: create it, or correct its name")
            if before is not None and found.delivered is None and _is_another(before, info):
                raise Refused(
                    f"{where} was deleted and created again since {self._spec} was begun: what was written of it is "
                    "gone; deliver it under another number"
                )
            shapes[name] = before or TargetShape(partitions=len(info.partitions), topic_id=info.id_text)
        return shapes

    async def settle(self, settled: Settled) -> None:
        """Record what the batch is.

        Raises Superseded, Retryable if it is not known whether it is recorded, Refused if too large.
        """
        record = codec.settled_record(self._spec.batch, settled)
        if codec.most_bytes(self._spec.batch, settled) > MOST_SETTLED_BYTES:
            raise Refused(f"{self._spec} goes to {len(settled.due)} target partitions, too many for one: divide it")
        await self._write([record])

    async def close(
        self, settled: Settled, receipts: Mapping[TopicPartition, DeliveryReceipt], found: BatchState
    ) -> None:
        """Record that the batch is written whole, and delete the records of its parts and of the oldest batches."""
        batch = self._spec.batch
        last = [receipts[place] for place in sorted(settled.due)]
        over = expired(found, batch)
        records = [
            codec.delivered_record(batch, settled, last, wall_ms()),
            codec.tombstone([codec.SETTLED, batch]),
            *(codec.tombstone([codec.RECEIPT, batch, *one.place]) for one in last),
            *(codec.tombstone([codec.DELIVERED, one]) for one in over),
        ]
        if over:
            records.append(codec.forgotten_record(max(over)))
        await self._write(records)

    async def leave(self) -> None:
        """End an open transaction of the driver, if that is possible."""
        await self._writer.leave()

    def _transaction(self, slot: int | str) -> Writer:
        spec = self._spec
        return Writer(self._cluster, delivery_writer(spec.application, slot), spec.transaction_timeout_ms)

    async def _look(self, end: int) -> BatchState:
        """Return what is committed before an offset, beginning with what an earlier attempt recorded.

        The whole ledger is read if no attempt has recorded that, or if the batch was begun or written before that
        record.
        """
        batch, start, width = self._spec.batch, await self._ledger.start(), NEAR_RECORDS
        while (at := end - width) > start:
            records, _ = await self._ledger.read(at, end)
            known = last_known(records, self._where)
            if known is None:
                width *= 4
            elif batch in known.written or batch in known.begun:
                break
            elif known.upto < at:
                width = end - known.upto
            else:
                since = (record for record in records if record.offset >= known.upto)
                return standing(since, batch, self._where, before=known)
        records, _ = await self._ledger.read(start, end)
        return standing(records, batch, self._where)

    async def _look_again(self, before: BatchState, end: int, own: Collection[int]) -> BatchState:
        """Continue from `before` up to a later offset.

        `own` records are acknowledged commits, even without their markers. Raises Retryable for an undecided record.
        """
        records, _ = await self._ledger.read(before.upto(self.generation), end)
        found = standing(records, self._spec.batch, self._where, own, before=before)
        if found.first_open is not None:
            raise Retryable(await self._undecided(found.first_open))
        return found

    async def _undecided(self, offset: int) -> str:
        """Say which transaction keeps a record of the ledger undecided: a hanging one delays all batches."""
        place = self._ledger.place
        found = (await named_transactions(self._cluster, [place])).get(place, ())
        oldest = next((one for one in found if one.start <= offset), None)
        if oldest is None:
            return f"{self._where} has a record at offset {offset} that is undecided yet: try again"
        return f"{open_sentence(self._where, place, oldest)}; then try again"

    async def _write(self, records: Iterable[Record]) -> frozenset[int]:
        """Write records in one transaction of the driver's writer, and return their offsets."""
        try:
            offsets = await self._ledger.append_in(self._writer, list(records))
            await self._writer.commit()
        except Fenced as error:
            # An attempt that began before this one may fence it late. The older one then finds that it was overtaken.
            since, _ = await self._ledger.read(self.generation, None)
            self._refuse_newer(standing(since, self._spec.batch, self._where))
            raise Retryable(f"{self._spec}: {error}; try again, what was written is kept") from error
        except OutcomeUnknown as error:
            raise Retryable(f"{self._spec}: {error}; try again, what was written is kept") from error
        return offsets

    def _refuse_newer(self, found: BatchState) -> None:
        if found.newest > self.generation:
            raise Superseded(sentence("superseded.delivery", delivery=str(self._spec)))


def _is_another(before: TargetShape, now: TopicInfo) -> bool:
    return before.topic_id not in ("", now.id_text) or len(now.partitions) < before.partitions
