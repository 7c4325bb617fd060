"""What the protocol needs from a target cluster: few methods, so that a model of a coordinator can replace brokers.

`ferry.protocol.driver` and `ferry.protocol.slot` are the protocol. On brokers `ferry.kafka.driver_port`
implements the driver's port, and `ferry.copy.kafka_slot` that of a slot. The tests' model answers adversarially: late
produces, stale reads, unknown commits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from ferry.model import Flow, LedgerRecord, Plan, Receipt, Record, Refusal, Slice, TopicPartition


class LedgerPort(Protocol):
    """The ledger outside transactions."""

    async def append(self, records: Sequence[Record]) -> int:
        """Write records durably; return the offset of the last one."""

    async def read(self, start: int | None, end: int | None) -> tuple[list[LedgerRecord], int]:
        """Return the records in `[start, end)` with their fates, and the offset that was read up to.

        None as `start` or `end` is the ledger's first offset or its end now.
        """


class DriverPort(LedgerPort, Protocol):
    """What a driver needs in addition to the ledger: the fence of earlier writers, and the lane's driver writer."""

    async def fence(self, slots: int, flows: Collection[Flow]) -> None:
        """Send InitProducerId for slots 0..slots-1 of every flow, and for the drivers of flows that are not this one.

        That fences their writers and ends their open transactions.
        """

    async def initialise(self) -> None:
        """Send InitProducerId for the driver writer.

        That fences earlier drivers, and ends their open transaction or this driver's own one.
        """

    async def append_in(self, records: Sequence[Record]) -> frozenset[int]:
        """Write records in the driver's transaction; return their offsets. Raises Fenced."""

    async def commit(self) -> None:
        """Send EndTxn(commit). Raises Fenced, and OutcomeUnknown when it is not known whether the commit happened."""

    async def leave(self) -> None:
        """End the own open transaction unless it is fenced, so that no reader waits for its timeout.

        Best effort: it takes seconds at most and raises nothing, because it is called after another error.
        """

    async def back_off(self, failures: int) -> None:
        """Wait before the next try; longer after more failures in a row."""

    async def settle(self, offset: int) -> None:
        """Wait, some seconds at most, until the ledger shows the fate of this driver's record at an offset."""


class ChunkPart(Protocol):
    """One partition's share of a chunk."""

    @property
    def piece(self) -> Slice:
        """The slice that the share belongs to."""

    @property
    def start(self) -> int:
        """First source offset of the chunk."""

    def receipt(self) -> Receipt:
        """Return the receipt of this share."""

    def position(self) -> tuple[int, str]:
        """Return the offset and the metadata for the position group."""


class SlotPort(Protocol):
    """One slot's writer."""

    async def read(self, start: int | None, end: int | None) -> tuple[list[LedgerRecord], int]:
        """Return the ledger's records in `[start, end)` with their fates, and the offset that was read up to.

        None as `start` or `end` is the ledger's first offset or its end now.
        """

    async def initialise(self) -> None:
        """Send InitProducerId for the slot: it fences earlier tries and ends their open transaction.

        This is the abort.
        """

    async def begin(self, plan: Plan, todo: Mapping[TopicPartition, Slice]) -> None:
        """Start to read what is left of slices, by `Slice.source`.

        Raises Dropped for slices that cannot be copied any more.
        """

    async def copy_chunk(self) -> Sequence[ChunkPart]:
        """Produce the next chunk's data in a transaction, all acknowledged.

        Return its parts, none when nothing is left.
        """

    async def send_positions(self, positions: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """Send the positions of target partitions, in the transaction.

        Raises Dropped for partitions that may not have one.
        """

    async def append_receipts(self, receipts: Sequence[Receipt]) -> frozenset[int]:
        """Append receipts, in the transaction; return their ledger offsets."""

    async def commit(self) -> None:
        """Commit the open transaction: send EndTxn(commit)."""

    async def leave(self) -> None:
        """End the own open transaction unless it is fenced, so that no reader waits for its timeout.

        Best effort: it takes seconds at most and raises nothing, because it is called after another error.
        """

    async def back_off(self, failures: int) -> None:
        """Wait before the next try; longer after more failures in a row."""

    def time_over(self, plan: Plan) -> bool:
        """Return whether the plan's time is over, counted from the beginning of the attempt.

        Chunks under way are finished.
        """

    def refusals(self) -> Mapping[TopicPartition, Refusal]:
        """Return the refusals of what could not be read, by source partition."""
