"""The protocol's ports on the modelled cluster: every request is one step of the driver."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ferry.copy.chunk import PartProgress
from ferry.copy.prepared_batch import as_it_is
from ferry.errors import Fenced as FencedOff
from ferry.errors import FerryError, OutcomeUnknown, Retryable
from ferry.ledger.codec import decode_key
from ferry.ledger.receipt_codec import receipt_records
from ferry.model import Flow, LedgerRecord, Origin, Plan, Receipt, Record, Refusal, Slice, TopicPartition
from ferry.protocol.drops import Dropped, drop
from ferry.protocol.slot import SlotRef
from ferry.wire.batch import Batch
from tests.pure.protocol.broker import LEDGER, POSITIONS, Busy, Fenced, Rejected, Target
from tests.pure.protocol.calls import Call

Source = Mapping[TopicPartition, Sequence[Batch]]


DRIVER = "driver"
"""The name of the lane's driver writer at the coordinator."""


def transactional_id(slot: int) -> str:
    """The slot's name at the coordinator."""
    return f"slot-{slot}"


async def patiently(label: str, act: Callable[[], Any], *, writes: bool = True) -> Any:
    """Repeat while the coordinator is busy with the transaction before."""
    while True:
        try:
            return await Call(label, act, writes=writes)
        except Busy:
            continue


async def read_ledger(target: Target, start: int | None, end: int | None) -> tuple[list[LedgerRecord], int]:
    """Read with fates. Only a read of "the end now" may be stale: an explicit end is waited for."""
    log = target.logs[LEDGER]
    begin = start or 0

    def act() -> tuple[list[LedgerRecord], int]:
        upto = max(begin, log.end - call.behind) if end is None else end
        assert upto <= log.end, "an explicit end is always the offset of a known record"
        fates = log.fates(begin, upto)
        found = [
            LedgerRecord(offset=at, key=record.key, value=record.value, fate=fate, producer_id=log.entries[at].producer)
            for at, fate in fates.items()
            if not log.entries[at].compacted and isinstance(record := log.entries[at].payload, Record)
        ]
        return found, upto

    call = Call("read" if end is None else "look", act)
    records, upto = await call
    return records, upto


class ModelWriter:
    """One transactional producer."""

    def __init__(self, target: Target, name: str) -> None:
        self.target = target
        self.name = name
        self.epoch = -1
        self._joined: set[str] = set()
        self._sequences: dict[str, int] = {}

    async def initialise(self) -> None:
        """As SlotPort."""
        _, epoch = await patiently("init", lambda: self.target.init_producer(self.name))
        self._renew(epoch)

    async def leave(self) -> None:
        """As SlotPort."""
        try:
            if await Call("describe", lambda: self.target.holds(self.name, self.epoch)):
                await Call("leave", lambda: self.target.leave(self.name, self.epoch), writes=True)
        except (FerryError, Busy, Fenced):
            return

    def _renew(self, epoch: int) -> None:
        self.epoch = epoch
        self._joined.clear()
        self._sequences.clear()

    async def _send(self, label: str, member: str, payloads: Sequence[object], *, sequenced: bool = True) -> int:
        """Join (version 1), then write; the sequence is the request's own, however late it arrives."""
        epoch, name = self.epoch, self.name
        try:
            if self.target.version < 2 and member not in self._joined:
                await patiently(f"join {member}", lambda: self.target.add(name, epoch, member))
                self._joined.add(member)
            sequence = self._sequences.get(member, 0) if sequenced else None
            if sequence is not None:
                self._sequences[member] = sequence + len(payloads)
            base: int = await patiently(label, lambda: self.target.write(name, epoch, member, sequence, payloads))
        except Fenced as error:
            raise FencedOff(f"{name} is fenced: {label}") from error
        except Rejected as error:
            raise Retryable(f"{label}: {error}") from error
        return base

    async def commit(self) -> None:
        """As SlotPort."""
        epoch, name = self.epoch, self.name
        try:
            renewed = await Call(
                "commit", lambda: self.target.end_txn(name, epoch, committed=True), writes=True, lost=OutcomeUnknown
            )
        except (Fenced, Rejected) as error:
            raise FencedOff(f"{name} is fenced: commit") from error
        except Busy as error:
            raise OutcomeUnknown(f"commit of {name}: {error}") from error
        if self.target.version >= 2:
            self._renew(renewed)
        else:
            self._joined.clear()

    async def back_off(self, failures: int) -> None:
        """As SlotPort."""
        await Call(f"rest {failures}", lambda: None)


class ModelLane(ModelWriter):
    """DriverPort."""

    def __init__(self, target: Target) -> None:
        super().__init__(target, DRIVER)

    async def append(self, records: Sequence[Record]) -> int:
        """As DriverPort."""
        kind = decode_key(records[0].key)[0]
        last: int = await Call(f"append {kind}", lambda: self.target.logs[LEDGER].append(records), writes=True)
        return last

    async def read(self, start: int | None, end: int | None) -> tuple[list[LedgerRecord], int]:
        """As DriverPort."""
        return await read_ledger(self.target, start, end)

    async def fence(self, slots: int, flows: Collection[Flow] = ()) -> None:
        """As DriverPort; all runs of the model have one name of the flow."""
        for slot in range(slots):
            name = transactional_id(slot)
            await patiently(f"fence {name}", partial(self.target.init_producer, name))

    async def append_in(self, records: Sequence[Record]) -> frozenset[int]:
        """As DriverPort."""
        kinds = [decode_key(record.key)[0] for record in records]
        base = await self._send(f"append {'plan' if 'plan' in kinds else kinds[0]}", LEDGER, records)
        return frozenset(range(base, base + len(records)))

    async def settle(self, offset: int) -> None:
        """As DriverPort; readers of the model bear with markers that tarry."""


class ModelSlot(ModelWriter):
    """SlotPort. `batches` is how many batches of a partition make a chunk."""

    def __init__(self, target: Target, source: Source, ref: SlotRef, batches: int) -> None:
        super().__init__(target, transactional_id(ref.slot))
        self._source = source
        self._batches = batches
        self._plan: Plan | None = None
        self._todo: dict[TopicPartition, Slice] = {}

    async def read(self, start: int | None, end: int | None) -> tuple[list[LedgerRecord], int]:
        """As SlotPort."""
        return await read_ledger(self.target, start, end)

    async def initialise(self) -> None:
        """As SlotPort."""
        self._todo = {}
        await super().initialise()

    async def begin(self, plan: Plan, todo: Mapping[TopicPartition, Slice]) -> None:
        """As SlotPort; plans without transforms have slices only."""
        self._plan, self._todo = plan, {}
        for place, piece in todo.items():
            assert not piece.dealt
            self._todo[place] = piece

    async def copy_chunk(self) -> Sequence[PartProgress]:
        """As SlotPort: batch by batch, whole ones, the partitions in turn."""
        parts: dict[TopicPartition, PartProgress] = {}
        for _ in range(self._batches):
            for place, piece in self._todo.items():
                assert self._plan is not None
                part = parts.setdefault(
                    place,
                    PartProgress(
                        plan=self._plan,
                        origin=Origin(),
                        piece=piece,
                        start=piece.start,
                        end=piece.start,
                        target_next=piece.target_next,
                    ),
                )
                if part.end < piece.end:
                    await self._copy_batch(part)
        moved = [part for part in parts.values() if part.moved]
        for part in moved:
            self._todo[part.piece.source] = replace(part.piece, start=part.end, target_next=part.target_next)
        return moved

    async def _copy_batch(self, part: PartProgress) -> None:
        piece = part.piece
        batch = next(batch for batch in self._source[piece.source] if batch.next_offset > part.end)
        if batch.is_control:
            part.pass_over(batch)
            return
        payloads = [(piece.source, offset) for offset in range(batch.base_offset, batch.next_offset)]
        out = as_it_is(batch)
        part.sent(out)
        base = await self._send(f"produce {piece.target}@{batch.base_offset}", str(piece.target), payloads)
        if not part.written(out.runs, base):
            at = batch.base_offset
            raise Dropped([drop("foreign.at-work", piece, at, place=str(piece.target), cluster="there", at=base)])

    async def send_positions(self, positions: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """As SlotPort."""
        await self._send("positions", POSITIONS, list(positions.items()), sequenced=False)

    async def append_receipts(self, receipts: Sequence[Receipt]) -> frozenset[int]:
        """As SlotPort."""
        records = [record for receipt in receipts for record in receipt_records(receipt)]
        base = await self._send("receipts", LEDGER, records)
        return frozenset(range(base, base + len(records)))

    def time_over(self, plan: Plan) -> bool:
        """As SlotPort."""
        return False

    def refusals(self) -> Mapping[TopicPartition, Refusal]:
        """As SlotPort."""
        return {}
