"""The ledger of a flow without its source: for reading and for pausing, even while the source is down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

from ferry.config.flow.flow import FlowConfig
from ferry.lane.connections import TargetConnection
from ferry.lane.unit_receipts import ByPlace, receipts_of_topic
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.map_block import ReceiptChain
from ferry.model import LedgerRecord, Receipt, Record
from ferry.plan.options import DEFAULT_LEDGER_REPLICATION

T = TypeVar("T")


class LedgerAccess:
    """A connection to a flow's target, for its ledger alone. Use as a context manager."""

    def __init__(self, flow: FlowConfig, *, patience_s: float = 60.0) -> None:
        """`patience_s`: how long an unreachable target is tried."""
        self._connection = TargetConnection.of(flow, patience_s=patience_s)
        self._factor = flow.ledger.replication_factor or DEFAULT_LEDGER_REPLICATION

    def __enter__(self) -> Self:
        """Connect. Raises Unreachable when the target does not answer."""
        self._connection.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def exists(self) -> bool:
        """Return whether the flow has a ledger yet."""
        return self._connection.run(self._connection.has_ledger)

    def view(self) -> LedgerView:
        """Return the ledger with old receipts as summaries. Raises BadInput without a ledger: the flow never ran."""
        return self._connection.run(self._connection.view)

    def view_if_any(self) -> LedgerView:
        """Return the ledger with old receipts as summaries; an empty view when the flow never ran."""
        return self._connection.run(self._connection.view_if_any)

    def view_with(self, lane: str, run: str) -> LedgerView:
        """Return the ledger with the plan, the outcome and the receipts of a run, however old.

        Raises BadInput without a ledger: the flow never ran.
        """
        return self._connection.run(lambda: self._connection.cache.view_with(lane, run))

    def view_named(self, lane: str, run: str) -> LedgerView:
        """Return the ledger with a run, even one whose record was pruned: the ledger is searched for its receipts.

        Raises BadInput without a ledger: the flow never ran.
        """
        return self._connection.run(lambda: self._connection.cache.view_named(lane, run))

    def view_with_newest(self, lane: str, runs: int) -> LedgerView:
        """Return the ledger with the plans, the outcomes and the receipts of the lane's newest runs.

        Raises BadInput without a ledger: the flow never ran.
        """
        return self._connection.run(lambda: self._connection.cache.view_with_newest(lane, runs))

    def whole(self) -> LedgerView:
        """Return the whole ledger with every receipt, which takes memory for all of them.

        Raises BadInput without a ledger: the flow never ran.
        """

        async def work() -> LedgerView:
            return fold(*await self._connection.ledger.read())

        return self._run(work)

    def receipts_near(self, view: LedgerView, lane: str, topic: str, offset: int) -> list[Receipt]:
        """Return the receipts of a source topic's partitions that hold an offset, also those no longer valid."""

        def of_topic(of: ReceiptChain) -> bool:
            return of.lane == lane and of.source.topic == topic

        return self._run(lambda: self._connection.cache.receipts_with(view, of_topic, offset))

    def units_of(self, view: LedgerView, lane: str, topic: str) -> ByPlace:
        """Return a repartitioned source topic's receipts by target partition, as far back as the ledger goes."""
        _, found = self._run(lambda: receipts_of_topic(self._connection.ledger, view, lane, topic))
        return found

    def _run(self, work: Callable[[], Awaitable[T]]) -> T:
        async def found() -> T:
            await self._connection.ledger.find()
            return await work()

        return self._connection.run(found)

    def written(self, start: int, end: int) -> list[LedgerRecord]:
        """Return the records of `[start, end)` that were written outside transactions.

        Raises BadInput without a ledger: the flow never ran.
        """
        return self._run(lambda: self._connection.ledger.read_untransacted(start, end))

    def append(self, records: Sequence[Record]) -> int:
        """Write records, and create the ledger first if there is none; return the offset of the last one.

        Raises Refused when the ledger's settings could lose them.
        """
        ledger = self._connection.ledger

        async def work() -> int:
            await ledger.open(self._factor)
            return await ledger.append(records)

        return self._connection.run(work)
