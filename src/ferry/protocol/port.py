"""What the protocol needs from a target cluster: few verbs, so that a modelled coordinator can stand in for brokers.

`ferry.protocol.opening` and `ferry.protocol.slot` are the protocol; `ferry.copy.kafka_slot` speaks to real brokers;
the tests' model answers adversarially (late produces, stale reads, unknown commits).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from ferry.model import Flow, LedgerRecord, Plan, Receipt, Record, Refusal, Slice, TopicPartition


class LedgerPort(Protocol):
    """The ledger outside transactions."""

    async def append(self, records: Sequence[Record]) -> int:
        """Write records durably; the offset of the last one."""

    async def read(self, start: int | None, end: int | None) -> tuple[list[LedgerRecord], int]:
        """Records in `[start, end)` with fates (None: the edges of now), and the offset read up to."""


class DriverPort(LedgerPort, Protocol):
    """What opening a run needs beside the ledger: the fence of earlier writers, and the lane's driver writer."""

    async def fence(self, slots: int, flows: Collection[Flow]) -> None:
        """InitProducerId for slots 0..slots-1 of every flow, and for the drivers of flows that are not the own one.

        Their writers are fenced, their open transactions ended.
        """

    async def initialise(self) -> None:
        """InitProducerId for the driver writer: fences earlier drivers, ends their open transaction, or the own one."""

    async def append_in(self, records: Sequence[Record]) -> frozenset[int]:
        """Write records in the driver's transaction; the offsets where they lie. Raises Fenced."""

    async def commit(self) -> None:
        """EndTxn(commit). Raises Fenced, and OutcomeUnknown when it is not known whether it happened."""

    async def leave(self) -> None:
        """As SlotPort.leave."""

    async def back_off(self, failures: int) -> None:
        """As SlotPort.back_off."""

    async def settle(self, offset: int) -> None:
        """Wait, some seconds at most, until the ledger shows the fate of the own record at an offset."""


class ChunkPart(Protocol):
    """One partition's share of a chunk."""

    @property
    def piece(self) -> Slice:
        """The slice it belongs to."""

    @property
    def start(self) -> int:
        """First source offset of the chunk."""

    def receipt(self) -> Receipt:
        """Its receipt."""

    def position(self) -> tuple[int, str]:
        """Offset and metadata for the position group."""


class SlotPort(Protocol):
    """One slot's writer."""

    async def read(self, start: int | None, end: int | None) -> tuple[list[LedgerRecord], int]:
        """As LedgerPort.read."""

    async def initialise(self) -> None:
        """InitProducerId for the slot: fences earlier attempts, ends their open transaction. This is the abort."""

    async def begin(self, plan: Plan, todo: Mapping[TopicPartition, Slice]) -> None:
        """Start to read what is left of slices, by `Slice.source`.

        Raises Dropped for slices that cannot be copied any more.
        """

    async def copy_chunk(self) -> Sequence[ChunkPart]:
        """Produce the next chunk's data inside a transaction, all acknowledged; empty when nothing is left."""

    async def send_positions(self, positions: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """Positions per target partition, in the transaction. Raises Dropped for partitions that may not have one."""

    async def append_receipts(self, receipts: Sequence[Receipt]) -> frozenset[int]:
        """Receipts, in the transaction; the ledger offsets where they lie."""

    async def commit(self) -> None:
        """EndTxn(commit)."""

    async def leave(self) -> None:
        """End the own open transaction unless it is fenced, so that nobody waits for its timeout.

        Best effort: it takes seconds at most and raises nothing, for it is called on the way out of another error.
        """

    async def back_off(self, failures: int) -> None:
        """Wait before the next attempt; longer after more failures in a row."""

    def time_over(self, plan: Plan) -> bool:
        """Whether the plan's time is over, counted from the attempt's beginning; chunks under way are finished."""

    def refusals(self) -> Mapping[TopicPartition, Refusal]:
        """What could not be read, by source partition."""
