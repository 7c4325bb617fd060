"""Requests of one client of a topic, to scripted brokers or to Kafka, and all that was answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ferry.wire.batch import batches
from tests.kafka.raw import Producer, Raw
from tests.pure.protocol.broker import LAST_EPOCH, Txn


class Talk:
    """Requests of one client of a topic, and all that was answered."""

    def __init__(self, raw: Raw, version: int) -> None:
        """`version`: of transactions."""
        self.raw = raw
        self.version = version
        self.name = f"slot-{raw.topic}"
        self.group = f"group-{raw.topic}"
        self.said: list[tuple[Any, ...]] = []
        self.transactions: dict[str, Txn] | None = None
        """Those of the scripted broker."""
        self._ids: list[int] = []

    def _who(self, one: Producer) -> tuple[int, int]:
        """A producer as it is compared: its id by the order of first appearance, -1 for none, and its epoch."""
        if one.id >= 0 and one.id not in self._ids:
            self._ids.append(one.id)
        return self._ids.index(one.id) if one.id >= 0 else -1, one.epoch

    async def init(self, own: Producer | None = None, *, once: bool = False, name: str | None = "") -> Producer:
        """InitProducerId: by default of the transactional id; None: of a producer without transactions."""
        code, who = await self.raw.initialised(self.name if name == "" else name, own, once=once)
        self.said.append(("InitProducerId", code, *self._who(who)))
        return who

    async def wear(self, left: int) -> None:
        """Use up the epochs of the transactional id but so many; the scripted broker takes a short cut."""
        who = await self.init()
        if self.transactions is not None:
            self.transactions[self.name].epoch = LAST_EPOCH - left
        while self.transactions is None and who.epoch < LAST_EPOCH - left:
            who = await self.raw.init(self.name)

    async def open(self, records: int = 2) -> Producer:
        """A producer with a transaction of so many records in partition 0."""
        who = await self.init()
        await self.write(who, 0, records)
        return who

    async def write(self, who: Producer, sequence: int, count: int = 1, *, joins: bool = True, **more: Any) -> None:
        """A batch in the transaction; the partition joins first where transactions are of version 1."""
        if joins and self.version == 1:
            await self.add(who, more.get("partition", 0))
        await self.produce(who, sequence, count, transactional_id=self.name, **more)

    async def produce(self, who: Producer, sequence: int, count: int = 1, **more: Any) -> None:
        """A batch, by default outside transactions."""
        found = await self.raw.produce(who, sequence, count, version=self.version, again=(19, 51), **more)
        self.said.append(("Produce", *found))

    async def add(self, who: Producer, *partitions: int) -> None:
        """AddPartitionsToTxn, by default of partition 0."""
        self.said.append(("AddPartitionsToTxn", *await self.raw.added(self.name, who, partitions or (0,))))

    async def add_group(self, who: Producer) -> None:
        """AddOffsetsToTxn."""
        self.said.append(("AddOffsetsToTxn", await self.raw.group_added(self.name, who, self.group)))

    async def position(self, who: Producer, offset: int, *, joins: bool = True, **more: Any) -> None:
        """TxnOffsetCommit; the group joins first where transactions are of version 1."""
        if joins and self.version == 1:
            await self.add_group(who)
        code = await self.raw.position(self.name, who, self.group, offset, version=self.version, **more)
        self.said.append(("TxnOffsetCommit", code))

    async def end(self, who: Producer, commit: bool) -> Producer:
        """EndTxn, and all markers; the producer that begins the next transaction."""
        code, found = await self.raw.ended(self.name, who, version=self.version, commit=commit)
        self.said.append(("EndTxn", code, *self._who(found)))
        await self.state()
        return who if code else found

    async def state(self) -> None:
        """DescribeTransactions, when all markers are written."""
        code, state, who = await self.raw.settled(self.name)
        self.said.append(("DescribeTransactions", code, state, *((who.id, who.epoch) if code else self._who(who))))

    async def log(self, partition: int = 0) -> None:
        """Where the log and what is stable of it end, and what a read_committed consumer gets of it."""
        await self.state()
        ends = [await self.raw.listed(isolation=isolation, partition=partition) for isolation in (0, 1)]
        self.said.append(("ListOffsets", *ends))
        await self.fetch(0, isolation=1, partition=partition)

    async def fetch(self, at: int, **more: Any) -> None:
        """Fetch: code, high watermark, last stable offset, log start, aborted transactions, batches' base offsets."""
        found = await self.raw.fetched(at, **more)
        aborted = [(self._who(Producer(number, 0))[0], first) for number, first in found.aborted]
        bases = [one.base_offset for one in batches(found.records)] if found.records else []
        ends = (found.high_watermark, found.last_stable_offset, found.log_start_offset)
        self.said.append(("Fetch", found.error_code, *ends, aborted, bases))


Case = Callable[[Talk], Awaitable[None]]


@dataclass(frozen=True)
class Cases:
    """Cases by name, for both versions of transactions, and for version 1 alone."""

    both: dict[str, Case] = field(default_factory=dict)
    first: dict[str, Case] = field(default_factory=dict)

    def of_both(self, case: Case) -> Case:
        """Add a case of both versions."""
        self.both[case.__name__] = case
        return case

    def of_first(self, case: Case) -> Case:
        """Add a case of version 1."""
        self.first[case.__name__] = case
        return case
